/** A port whose accept queue is full: connections to it are neither taken nor refused. */
import { connect, type Socket } from 'node:net'
import { Worker } from 'node:worker_threads'
import { deferred, within } from './deadline.ts'

/** Listens, then never runs again until told: only a thread that stands still leaves connections unaccepted. */
const LISTENER = `
const { workerData, parentPort } = require('node:worker_threads')
const server = require('node:net').createServer().listen({ port: 0, host: '127.0.0.1', backlog: 1 }, () => {
  parentPort.postMessage(server.address().port)
  setImmediate(() => {
    Atomics.wait(workerData, 0, 0)
    process.exit(0)
  })
})
`
/** More than any kernel lets into a queue of one. */
const FILLERS = 8

export class FullBacklog {
  readonly port: number
  readonly #worker: Worker
  readonly #wake: Int32Array
  readonly #fillers: Socket[]

  private constructor(port: number, worker: Worker, wake: Int32Array) {
    this.port = port
    this.#worker = worker
    this.#wake = wake
    this.#fillers = Array.from({ length: FILLERS }, () => {
      const socket = connect({ port, host: '127.0.0.1' })
      return socket.on('error', () => {})
    })
  }

  static async open(): Promise<FullBacklog> {
    const wake = new Int32Array(new SharedArrayBuffer(4))
    const worker = new Worker(LISTENER, { eval: true, workerData: wake })
    const listening = deferred<number>()
    worker.once('message', listening.resolve)
    worker.once('error', listening.reject)
    const port = await within(listening.promise, 'the port with a full accept queue')
    const backlog = new FullBacklog(port, worker, wake)
    // One round trip of the kernel fills the queue; the last filler stays outside for good.
    const first = deferred()
    backlog.#fillers[0]?.once('connect', () => first.resolve())
    await within(first.promise, 'the accept queue to take its first connection')
    return backlog
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`
  }

  async close(): Promise<void> {
    for (const socket of this.#fillers) socket.destroy()
    const gone = deferred()
    this.#worker.once('exit', () => gone.resolve())
    Atomics.store(this.#wake, 0, 1)
    Atomics.notify(this.#wake, 0)
    await within(gone.promise, 'the port with a full accept queue to close')
  }
}
