/** A cheap engine for volume on bare sockets: each request says in its `user` member how it wants to end. */
import type { AddressInfo } from 'node:net'
import { createServer, type Server, type Socket } from 'node:net'
import { listenOnLoopback } from './loopback.ts'
import { vllmPage } from './scripted-engine.ts'
import { chatChunk } from './scripted-exchange.ts'

export const FATES = [
  'complete',
  'whole',
  'client_error',
  'full',
  'full_inside',
  'engine_error',
  'reset_before',
  'reset_after',
  'end_early',
  'hang',
  'hang_after',
] as const
export type Fate = (typeof FATES)[number]

const frame = (value: unknown) => `data: ${typeof value === 'string' ? value : JSON.stringify(value)}\n\n`
const chunk = (text: string) => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`
const json = (status: number, value: unknown) => {
  const body = JSON.stringify(value)
  return `HTTP/1.1 ${status} X\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
}
const text = (body: string) => `HTTP/1.1 200 OK\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`

const FULL = { error: { message: 'currently busy', type: 'Service Unavailable', code: 503 } }
const TOKEN = chunk(frame(chatChunk({ content: ' token' })))
const USAGE = { ...chatChunk({}), choices: [], usage: { prompt_tokens: 8, completion_tokens: 3 } }
const HEAD =
  'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n' +
  chunk(frame(chatChunk({ role: 'assistant', content: '' })))
const LAST = '0\r\n\r\n'
const DONE = chunk(frame('[DONE]')) + LAST
const COMPLETE = [HEAD + TOKEN, TOKEN + TOKEN + chunk(frame(USAGE)) + DONE] as const

/** What is sent at once and a turn later; `reset` breaks the socket there, nothing leaves the exchange open. */
const ANSWERS: Readonly<Record<Fate, readonly [now: string, later?: string | 'reset']>> = {
  complete: COMPLETE,
  whole: [json(200, { choices: [], usage: { prompt_tokens: 8, completion_tokens: 3 } })],
  client_error: [json(400, { error: { message: 'bad', type: 'BadRequestError', code: 400 } })],
  full: [json(503, FULL)],
  full_inside: [HEAD + chunk(frame(FULL)) + DONE],
  engine_error: [json(500, { error: { message: 'boom', type: 'InternalServerError', code: 500 } })],
  reset_before: ['', 'reset'],
  reset_after: [HEAD + TOKEN, 'reset'],
  end_early: [HEAD + LAST],
  hang: [''],
  hang_after: [HEAD + TOKEN],
}

export class UnrulyEngine {
  readonly #sockets = new Set<Socket>()
  readonly #open = new Set<Socket>()
  readonly #server: Server = createServer({ noDelay: true }, (socket) => this.#serve(socket))

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }
  /** Sockets with an exchange that has not come to its end. */
  get openExchanges(): number {
    return this.#open.size
  }

  async listen(): Promise<this> {
    await listenOnLoopback(this.#server)
    return this
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy()
    await new Promise((resolve) => this.#server.close(resolve))
  }

  #serve(socket: Socket): void {
    this.#sockets.add(socket)
    socket.on('error', () => {})
    socket.on('close', () => {
      this.#sockets.delete(socket)
      this.#open.delete(socket)
    })
    let received = ''
    socket.on('data', (bytes) => {
      received += bytes.toString('latin1')
      const headEnd = received.indexOf('\r\n\r\n')
      const length = Number(/content-length: (\d+)/i.exec(received)?.[1] ?? 0)
      if (headEnd < 0 || received.length < headEnd + 4 + length) return
      const request = received
      received = ''
      this.#answer(socket, request)
    })
  }

  #answer(socket: Socket, request: string): void {
    if (request.startsWith('GET')) {
      socket.write(text(request.startsWith('GET /metrics') ? vllmPage() : '{"object":"list","data":[]}'))
      return
    }
    const fate = /"user":"(\w+)"/.exec(request)?.[1] as Fate | undefined
    const [now, later] = fate === undefined ? [json(200, {})] : ANSWERS[fate]
    this.#open.add(socket)
    if (now !== '') socket.write(now)
    if (later === 'reset') setImmediate(() => socket.resetAndDestroy())
    else if (later !== undefined) {
      setImmediate(() => {
        this.#open.delete(socket)
        if (!socket.destroyed) socket.write(later)
      })
    } else if (now !== '' && fate !== 'hang_after') this.#open.delete(socket)
  }
}
