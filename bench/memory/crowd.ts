/** A process with thousands of client connections, idle or with a request each. Usage: crowd.ts PORT. */
import { connect, type Socket } from 'node:net'
import { answers } from '../../test/support/node-child.ts'
import { sharedNowMs } from './clock.ts'
import type { Wish } from './engine.ts'

export interface CrowdWish {
  readonly count: number
  /** None: the connection stays idle. */
  readonly wish?: Wish
  readonly model?: string
  readonly stream?: boolean
  /** Reads nothing, not even the first byte. */
  readonly stalled?: boolean
  /** Ready when the answer has begun; else as soon as the request is on its way. */
  readonly begun?: boolean
  /** In place of a whole request, which then stands still: so much of a body twice as long, or of headers without end. */
  readonly unfinished?: Unfinished
}

export interface Unfinished {
  readonly part: 'body' | 'headers'
  readonly bytes: number
}

const port = Number(process.argv[2])
const CHAINS = 64
const sockets = new Map<string, Socket>()
let lastId = 0

async function come(wanted: CrowdWish): Promise<number> {
  let begun = 0
  const chain = async () => {
    while (begun < wanted.count) {
      begun += 1
      await one(wanted)
    }
  }
  await Promise.all(Array.from({ length: CHAINS }, chain))
  return sockets.size
}

function one(wanted: CrowdWish): Promise<void> {
  const { stalled = false, begun = false } = wanted
  lastId += 1
  const id = `m${lastId}`
  return new Promise((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port, noDelay: true })
    sockets.set(id, socket)
    socket.on('error', reject)
    socket.once('close', () => sockets.delete(id))
    if (stalled) socket.pause()
    else socket.on('data', () => begun && resolve())
    socket.once('connect', () => {
      const sent = firstBytes(id, wanted)
      if (sent !== undefined) socket.write(sent)
      if (!begun) resolve()
    })
  })
}

function firstBytes(
  id: string,
  { wish, model = 'tiny', stream = true, unfinished }: CrowdWish,
): string | undefined {
  if (unfinished !== undefined) return beginningOf(id, unfinished)
  if (wish === undefined) return undefined
  const messages = [{ role: 'user', content: 'Hello' }]
  const body = JSON.stringify({ model, stream, user: `${wish} ${id}`, messages })
  return `${headersOf(id, body.length)}\r\n${body}`
}

function beginningOf(id: string, { part, bytes }: Unfinished): string {
  if (part === 'body') return `${headersOf(id, 2 * bytes)}\r\n${' '.repeat(bytes)}`
  let headers = headersOf(id, 0)
  for (let line = 1; headers.length < bytes; line++) headers += `x-more-${line}: ${'h'.repeat(1000)}\r\n`
  return headers.slice(0, bytes)
}

/** All but the empty line at their end. */
function headersOf(id: string, bodyBytes: number): string {
  return `POST /v1/chat/completions HTTP/1.1\r\nhost: sluice.test\r\nx-request-id: ${id}\r\ncontent-type: application/json\r\ncontent-length: ${bodyBytes}\r\n`
}

/** Leaves one after another, who came last first, and tells when each did: so nobody who waits moves up meanwhile. */
async function leave({ everyMs }: { readonly everyMs: number }): Promise<(readonly [string, number])[]> {
  const left: (readonly [string, number])[] = []
  for (const [id, socket] of [...sockets].reverse()) {
    left.push([id, sharedNowMs()])
    socket.destroy()
    await new Promise((resolve) => setTimeout(resolve, everyMs))
  }
  return left
}

answers({ come, leave })
process.stderr.write('the crowd is ready\n')
