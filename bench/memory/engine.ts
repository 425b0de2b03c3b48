/** A process with one cheap engine: each request says in its `user` member what it wants, and closes are timed. */
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { vllmPage } from '../../test/support/metrics-pages.ts'
import { answers } from '../../test/support/node-child.ts'
import { RequestReader } from '../../test/support/request-reader.ts'
import { chatChunk, type ReceivedRequest } from '../../test/support/scripted-exchange.ts'
import { sharedNowMs } from './clock.ts'

/** `quick` ends at once, `pace` goes on for ever, `role` stops before content, `silent` says nothing, `flood` is large. */
export type Wish = 'quick' | 'pace' | 'role' | 'silent' | 'flood'

const TOKEN_MS = 200
/** More than a reader that stands still, its socket's buffers and Sluice's together take. */
const FLOOD_BYTES = 512 * 1024
/** A flood that has stood for so long is held up, in ms: a reader that is only slow lets it go on sooner. */
const HELD_UP_MS = 500

const event = (data: object | string) => {
  const text = `data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`
  return `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`
}
const HEAD = 'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n'
const ROLE = event(chatChunk({ role: 'assistant', content: '' }))
const TOKEN = event(chatChunk({ content: ' token' }))
const END = `${event('[DONE]')}0\r\n\r\n`
const TOKENS = Buffer.from(TOKEN.repeat(Math.ceil((16 * 1024) / TOKEN.length)))
const whole = (body: string) => `HTTP/1.1 200 OK\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`

const paced = new Set<Socket>()
/** Floods that can't go on, and since when. */
const standing = new Map<Socket, number>()
const open = new Map<Socket, string>()
const closed: (readonly [id: string, atMs: number])[] = []

/** A tenth of the streams in each tenth of the period, so that none of them waits for all others. */
let slot = 0
setInterval(() => {
  slot = (slot + 1) % 10
  let at = 0
  for (const socket of paced) if (at++ % 10 === slot) socket.write(TOKEN)
}, TOKEN_MS / 10)

function answer(socket: Socket, request: ReceivedRequest): void {
  if (request.method === 'GET') {
    socket.write(
      whole(request.path === '/metrics' ? vllmPage({ running: open.size }) : '{"object":"list","data":[]}'),
    )
    return
  }
  const { user = 'quick ' } = JSON.parse(request.body.toString()) as { user?: string }
  const [wish = '', id = ''] = user.split(' ')
  if (wish !== 'quick') open.set(socket, id)
  if (wish === 'quick') socket.write(HEAD + ROLE + TOKEN + END)
  else if (wish === 'role') socket.write(HEAD + ROLE)
  else if (wish === 'pace') {
    socket.write(HEAD + ROLE + TOKEN)
    paced.add(socket)
  } else if (wish === 'flood') {
    socket.write(HEAD + ROLE)
    flood(socket, 0)
  }
}

function flood(socket: Socket, sentBytes: number): void {
  standing.delete(socket)
  for (let sent = sentBytes; sent < FLOOD_BYTES; ) {
    sent += TOKENS.length
    if (socket.write(TOKENS)) continue
    standing.set(socket, sharedNowMs())
    socket.once('drain', () => flood(socket, sent))
    return
  }
}

function serve(socket: Socket): void {
  const reader = new RequestReader()
  socket.on('error', () => {})
  socket.on('data', (bytes) => {
    reader.push(bytes)
    const request = reader.next()
    if (request !== undefined) answer(socket, request)
  })
  socket.once('close', () => {
    const id = open.get(socket)
    if (id !== undefined) closed.push([id, sharedNowMs()])
    open.delete(socket)
    paced.delete(socket)
    standing.delete(socket)
  })
}

// Two ports make two replicas of one process.
const servers = [createServer({ noDelay: true }, serve), createServer({ noDelay: true }, serve)]
await Promise.all(
  servers.map((server) => new Promise<void>((resolve) => server.listen(0, '127.0.0.1', 4096, resolve))),
)
const urls = servers.map((server) => `http://127.0.0.1:${(server.address() as AddressInfo).port}`)
process.stderr.write(`cheap engine on ${urls.join(' and ')}\n`)
const heldUp = () => [...standing.values()].filter((sinceMs) => sharedNowMs() - sinceMs >= HELD_UP_MS).length
answers({ open: () => open.size, heldUp, closed: () => closed.splice(0) })
