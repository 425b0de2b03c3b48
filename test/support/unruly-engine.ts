/** A cheap engine for volume on bare sockets: each request says in its `user` member how it wants to end. */
import type { AddressInfo } from 'node:net'
import { createServer, type Server, type Socket } from 'node:net'
import { EngineError } from '../../src/emulator/errors.ts'
import type { AnswerUsage } from '../../src/emulator/frames.ts'
import { ANSWER_FORMS, ANSWER_HEAD } from './answer-forms.ts'
import { GENERATION_PATHS, type GenerationPath } from './generation-paths.ts'
import { listenOnLoopback } from './loopback.ts'
import { vllmPage } from './scripted-engine.ts'

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

/** What is sent at once and a turn later; `reset` breaks the socket there, nothing leaves the exchange open. */
type Parts = readonly [now: string, later?: string | 'reset']

const USAGE: AnswerUsage = { promptTokens: 8, outputTokens: 3, cachedTokens: 0 }
const TEXT = ' token'
const BAD = new EngineError(400, 'BadRequestError', 'bad')
const BUSY = new EngineError(503, 'Service Unavailable', 'currently busy')
const BOOM = new EngineError(500, 'InternalServerError', 'boom')
const OPENING = 'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n'
const LAST = '0\r\n\r\n'

const whole = (status: number, type: string, body: string) =>
  `HTTP/1.1 ${status} X\r\ncontent-type: ${type}\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
const json = (status: number, body: string) => whole(status, 'application/json', body)
const chunks = (frames: readonly string[]) =>
  frames.map((frame) => `${Buffer.byteLength(frame).toString(16)}\r\n${frame}\r\n`).join('')

function answersOf(path: GenerationPath): Readonly<Record<Fate, Parts>> {
  const form = ANSWER_FORMS[path]
  const writer = form.writer(ANSWER_HEAD)
  const begun = writer.token({ choice: 0, text: TEXT }, USAGE)
  // What comes before the first token, as a role or a message without content, leaves with the head.
  const head = OPENING + chunks(begun.slice(0, -1))
  const first = head + chunks(begun.slice(-1))
  const rest = [
    ...writer.token({ choice: 0, text: TEXT }, USAGE),
    ...writer.token({ choice: 0, text: TEXT, finish: 'stop' }, USAGE),
    ...writer.end(USAGE),
  ]
  const refused = (error: EngineError) => json(error.status, form.refusal(error))
  return {
    complete: [first, chunks(rest) + LAST],
    whole: [json(200, form.whole(ANSWER_HEAD, [{ text: TEXT, finish: 'stop' }], USAGE))],
    client_error: [refused(BAD)],
    full: [refused(BUSY)],
    full_inside: [head + chunks(form.failure(BUSY)) + LAST],
    engine_error: [refused(BOOM)],
    reset_before: ['', 'reset'],
    reset_after: [first, 'reset'],
    end_early: [head + LAST],
    hang: [''],
    hang_after: [first],
  }
}

const ANSWERS: ReadonlyMap<string, Readonly<Record<Fate, Parts>>> = new Map(
  GENERATION_PATHS.map((path) => [path, answersOf(path)]),
)
/** To a request without a fate: a probe. */
const PROBED: Parts = [json(200, '{}')]

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
    const [method, path = ''] = request.split(' ', 2)
    if (method === 'GET') {
      const page = path === '/metrics' ? vllmPage() : '{"object":"list","data":[]}'
      socket.write(whole(200, 'text/plain', page))
      return
    }
    const fate = /"user":"(\w+)"/.exec(request)?.[1] as Fate | undefined
    const told = fate === undefined ? undefined : ANSWERS.get(path)?.[fate]
    const [now, later] = told ?? PROBED
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
