/** Runs jobs on threads, as many at a time as asked, each remembered; one that hangs is ended and told as an error. */
import { Worker } from 'node:worker_threads'

/** Longest run of one job: a short one, and what each request of a long one adds, many times what it takes alone. */
const JOB_LIMIT_MS = 240_000
const REQUEST_LIMIT_MS = 50

/** When a job counts as hung, in ms; a spec with a rate and a length says how many requests it has. */
export function jobLimitMs({ ratePerSec = 0, durationMs = 0 }) {
  return JOB_LIMIT_MS + REQUEST_LIMIT_MS * ratePerSec * (durationMs / 1000)
}

export class Pool {
  #idle = []
  #queue = []
  #alive = new Set()
  /** Answers under way, by what was asked, so that nothing runs twice. */
  #pending = new Map()
  #options
  #jobs = 0

  /**
   * `codeOf(job, spec)` names the code that the result hangs on; `onDone` hears of each result that was computed.
   * `workerUrl` and `workerData` are the thread's.
   */
  constructor({ threads, onDone = () => {}, ...options }) {
    this.#options = { onDone, ...options }
    for (let n = 0; n < threads; n++) this.#idle.push(this.#start())
  }

  /** The result of a job, computed or remembered. Rejects when it fails or takes too long. */
  run(job, spec) {
    const { cache, codeOf } = this.#options
    const parts = [job, spec, codeOf(job, spec)]
    const known = cache.get(parts)
    if (known !== undefined) return Promise.resolve(known)
    const key = JSON.stringify(parts)
    const running = this.#pending.get(key)
    if (running !== undefined) return running
    const answer = new Promise((resolve, reject) => {
      this.#queue.push({ job, spec, parts, resolve, reject })
      this.#next()
    }).finally(() => this.#pending.delete(key))
    this.#pending.set(key, answer)
    return answer
  }

  /** Jobs that wait for a thread. */
  get waiting() {
    return this.#queue.length
  }

  async close() {
    this.#queue = []
    await Promise.all([...this.#alive].map((worker) => worker.terminate()))
  }

  #start() {
    const { workerUrl, workerData } = this.#options
    const worker = new Worker(workerUrl, { workerData })
    this.#alive.add(worker)
    return worker
  }

  #next() {
    if (this.#queue.length === 0 || this.#idle.length === 0) return
    const worker = this.#idle.pop()
    const { job, spec, parts, resolve, reject } = this.#queue.shift()
    const done = (next) => {
      clearTimeout(limit)
      worker.off('error', fail)
      worker.off('message', take)
      this.#idle.push(next)
      this.#next()
    }
    const broken = (reason) => {
      this.#alive.delete(worker)
      worker.terminate()
      done(this.#start())
      reject(new Error(`${job} of ${JSON.stringify(spec)} ${reason}`))
    }
    const limitMs = jobLimitMs(spec)
    const limit = setTimeout(() => broken(`took more than ${Math.round(limitMs / 1000)} s`), limitMs)
    const fail = (error) => broken(`failed: ${error}`)
    const take = ({ result, error }) => {
      done(worker)
      if (error !== undefined) {
        reject(new Error(`${job} of ${JSON.stringify(spec)} failed: ${error}`))
        return
      }
      this.#options.cache.put(parts, result)
      this.#options.onDone(job, spec)
      resolve(result)
    }
    worker.once('error', fail)
    worker.once('message', take)
    worker.postMessage({ id: ++this.#jobs, job, spec })
  }
}
