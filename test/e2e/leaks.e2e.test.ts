/** Ten thousand requests that end in every manner at random: at the end nothing of them is left. */
import { connect, type Socket } from 'node:net'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type Running, startSluice } from '../../src/cli/serve.ts'
import { loadConfig } from '../../src/config/load.ts'
import { until } from '../support/deadline.ts'
import { FATES, type Fate, UnrulyEngine } from '../support/unruly-engine.ts'

const REQUESTS = 10_000
const AT_ONCE = 64
/** Shares of ends that the client chooses itself; the rest it reads to the end. */
const LEAVE_RATIO = 0.15

/** Share of requests whose end the engine makes odd. */
const ODD_RATIO = 0.3

let engines: UnrulyEngine[]
let running: Running

beforeAll(async () => {
  engines = [await new UnrulyEngine().listen(), await new UnrulyEngine().listen()]
  const replicas = engines.map(({ url }) => `      - ${url}`).join('\n')
  const yaml = `mode: enforce\nauth: none\ndefault_class: chat\nclasses: { chat: { ttft: 30s, overload: wait, max_wait: 1s } }\nlisten: 127.0.0.1:18080\nmodels:\n  - name: tiny\n    replicas:\n${replicas}\n`
  const loaded = loadConfig(yaml, { fileName: 'test.yaml', env: {} })
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems))
  const anywhere = { host: '127.0.0.1', port: 0 }
  const config = { ...loaded.config, listen: anywhere, admin: { listen: anywhere } }
  running = await startSluice({ config, logLevel: 'silent' })
})

afterAll(async () => {
  await running.close()
  await Promise.all(engines.map((engine) => engine.close()))
})

it('leaves no permit, waiter, byte or open exchange, and a flat heap', { timeout: 180_000 }, async () => {
  const { runtime } = running
  const random = mulberry32(7)
  const tally = new Map<string, number>()
  const turn = async (requests: number) => {
    let begun = 0
    const client = async () => {
      const line = new Line()
      while (begun < requests) {
        begun++
        const fate = fateOf(random)
        const end = await line.one(fate, random)
        tally.set(end, (tally.get(end) ?? 0) + 1)
      }
      line.close()
    }
    await Promise.all(Array.from({ length: AT_ONCE }, client))
    await until(() => runtime.edge.underWay === 0, 'every request to be over', 10_000)
  }
  await turn(REQUESTS * 0.4)
  const before = settledHeap()
  await turn(REQUESTS * 0.6)
  const grownBytes = settledHeap() - before

  const { counts, inFlight, state } = runtime.gate
  expect(counts.offered).toBeGreaterThan(REQUESTS * 0.9)
  expect(counts.shed + counts.cancelled + counts.failed + counts.settled).toBe(counts.offered)
  expect({ inFlight, waiting: state.waiting.requests, bytes: state.waiting.bytes }).toEqual({
    inFlight: 0,
    waiting: 0,
    bytes: 0,
  })
  for (const ledger of state.replicas.values()) {
    expect([ledger.inFlightRequests, ledger.backlogTokens, ledger.contextTokens]).toEqual([0, 0, 0])
  }
  expect(runtime.edge.buffers.heldBytes).toBe(0)
  await until(
    () => engines.every((engine) => engine.openExchanges === 0),
    'every upstream exchange to be closed',
  )
  // The ring of decisions and the SLO windows fill during the first part; 6000 leaked requests would be 10 MB or more.
  expect(grownBytes).toBeLessThan(8_000_000)
  // The mix was a mix: both sides did what they were asked to.
  for (const end of ['left', '200', '400', 'cut']) expect(tally.get(end) ?? 0).toBeGreaterThan(100)
})

/** Mostly sound, or the breakers would rightly take both replicas away; seldom full, since that earns a rest of 200 ms. */
function fateOf(random: () => number): Fate {
  const odd = random() < ODD_RATIO ? FATES[Math.floor(random() * FATES.length)] : undefined
  return odd === undefined || (odd.startsWith('full') && random() < 0.8) ? 'complete' : odd
}

/** A client's kept-alive connection, opened anew after each departure. */
class Line {
  #socket: Socket | undefined

  /** Sends one request and ends it: by reading it, or by leaving at a random moment (hung ones always so). */
  one(fate: Fate, random: () => number): Promise<string> {
    const leaves = fate.startsWith('hang') || random() < LEAVE_RATIO
    const content = 'Hello '.repeat(Math.floor(random() * 50))
    const messages = [{ role: 'user', content }]
    const body = JSON.stringify({ model: 'tiny', stream: fate !== 'whole', user: fate, messages })
    this.#socket ??= connect({ host: '127.0.0.1', port: running.port, noDelay: true })
    const socket = this.#socket
    return new Promise((resolve) => {
      let text = ''
      const over = (end: string) => {
        clearTimeout(timer)
        socket.removeAllListeners().on('error', () => {})
        if (socket.destroyed) this.#socket = undefined
        resolve(end)
      }
      const timer = leaves
        ? setTimeout(() => {
            socket.destroy()
            over('left')
          }, random() * 15)
        : undefined
      socket.on('error', () => {})
      socket.on('close', () => over('cut'))
      socket.on('data', (bytes) => {
        text += bytes.toString('latin1')
        if (!isComplete(text)) return
        over(text.startsWith('HTTP/1.1 200') && text.includes('"error"') ? 'cut' : text.slice(9, 12))
      })
      socket.write(
        `POST /v1/chat/completions HTTP/1.1\r\nhost: sluice.test\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
      )
    })
  }

  close(): void {
    this.#socket?.destroy()
  }
}

function isComplete(text: string): boolean {
  const headEnd = text.indexOf('\r\n\r\n')
  if (headEnd < 0) return false
  const length = /content-length: (\d+)/i.exec(text)?.[1]
  return length === undefined ? text.endsWith('0\r\n\r\n') : text.length >= headEnd + 4 + Number(length)
}

/** The heap after a full collection, in bytes. */
function settledHeap(): number {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  collect()
  return process.memoryUsage().heapUsed
}

function mulberry32(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296
  }
}
