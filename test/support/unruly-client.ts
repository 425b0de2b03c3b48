/** A client for volume on bare sockets: each request comes to its own odd end, by the engine's doing or by leaving. */
import { connect, type Socket } from 'node:net'
import type { Rng } from '../../src/sim/rng.ts'
import { GENERATION_PATHS, promptOf } from './generation-paths.ts'
import { FATES, type Fate } from './unruly-engine.ts'

/** Share of requests that the client leaves; the rest it reads to the end. */
const LEAVE_RATIO = 0.15
/** Share of requests whose end the engine makes odd. */
const ODD_RATIO = 0.3
/** Longest patience of a client that leaves, in ms. */
const PATIENCE_MS = 15
const LONGEST_PROMPT_WORDS = 50

/** Mostly sound, or the breakers would rightly take the replicas away; seldom full, since that earns a rest of 200 ms. */
export function drawFate(rng: Rng): Fate {
  const odd = rng.uniform() < ODD_RATIO ? FATES[rng.integer(FATES.length)] : undefined
  return odd === undefined || (odd.startsWith('full') && rng.uniform() < 0.8) ? 'complete' : odd
}

/** A client's kept-alive connection, opened anew after each departure. */
export class UnrulyLine {
  readonly #port: number
  #socket: Socket | undefined

  constructor(port: number) {
    this.#port = port
  }

  /**
   * Sends one request on a random route and ends it: by reading it, or by leaving at a random moment (hung ones always
   * so). Resolves with `left`, `cut` or the status; `headers` are whole lines.
   */
  one(fate: Fate, rng: Rng, headers = ''): Promise<string> {
    const leaves = fate.startsWith('hang') || rng.uniform() < LEAVE_RATIO
    const path = GENERATION_PATHS[rng.integer(GENERATION_PATHS.length)] ?? '/v1/chat/completions'
    const prompt = promptOf(path, 'Hello '.repeat(rng.integer(LONGEST_PROMPT_WORDS)))
    const body = JSON.stringify({ model: 'tiny', stream: fate !== 'whole', user: fate, ...prompt })
    this.#socket ??= connect({ host: '127.0.0.1', port: this.#port, noDelay: true })
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
          }, rng.uniform() * PATIENCE_MS)
        : undefined
      socket.on('error', () => {})
      socket.on('close', () => over('cut'))
      socket.on('data', (bytes) => {
        text += bytes.toString('latin1')
        if (!isComplete(text)) return
        over(text.startsWith('HTTP/1.1 200') && text.includes('"error"') ? 'cut' : text.slice(9, 12))
      })
      socket.write(
        `POST ${path} HTTP/1.1\r\nhost: sluice.test\r\n${headers}content-length: ${body.length}\r\n\r\n${body}`,
      )
    })
  }

  close(): void {
    this.#socket?.destroy()
    this.#socket = undefined
  }
}

function isComplete(text: string): boolean {
  const headEnd = text.indexOf('\r\n\r\n')
  if (headEnd < 0) return false
  const length = /content-length: (\d+)/i.exec(text)?.[1]
  return length === undefined ? text.endsWith('0\r\n\r\n') : text.length >= headEnd + 4 + Number(length)
}
