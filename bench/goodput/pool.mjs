/** Runs jobs on threads, as many at a time as asked, each remembered; one that hangs is ended and told as an error. */
import { Worker } from 'node:worker_threads'

/** Longest run of one job. */
const JOB_LIMIT_MS = 180_000

export class Pool {
  #idle = []
  #queue = []
  #alive = new Set()
  #cache
  #codeOf
  #onDone
  #jobs = 0

  /** `codeOf(job, spec)` names the code that the result hangs on; `onDone` hears of each result that was computed. */
  constructor({ threads, cache, codeOf, onDone = () => {} }) {
    this.#cache = cache
    this.#codeOf = codeOf
    this.#onDone = onDone
    for (let n = 0; n < threads; n++) this.#idle.push(this.#start())
  }

  /** The result of a job, computed or remembered. Rejects when it fails or takes too long. */
  run(job, spec) {
    const parts = [job, spec, this.#codeOf(job, spec)]
    const known = this.#cache.get(parts)
    if (known !== undefined) return Promise.resolve(known)
    return new Promise((resolve, reject) => {
      this.#queue.push({ job, spec, parts, resolve, reject })
      this.#next()
    })
  }

  async close() {
    await Promise.all([...this.#alive].map((worker) => worker.terminate()))
  }

  #start() {
    const worker = new Worker(new URL('./worker.mjs', import.meta.url))
    this.#alive.add(worker)
    return worker
  }

  #next() {
    if (this.#queue.length === 0 || this.#idle.length === 0) return
    const worker = this.#idle.pop()
    const { job, spec, parts, resolve, reject } = this.#queue.shift()
    const id = ++this.#jobs
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
    const limit = setTimeout(() => broken(`took more than ${JOB_LIMIT_MS / 1000} s`), JOB_LIMIT_MS)
    const fail = (error) => broken(`failed: ${error}`)
    const take = ({ result, error }) => {
      done(worker)
      if (error !== undefined) {
        reject(new Error(`${job} of ${JSON.stringify(spec)} failed: ${error}`))
        return
      }
      this.#cache.put(parts, result)
      this.#onDone(job, spec, result)
      resolve(result)
    }
    worker.once('error', fail)
    worker.once('message', take)
    worker.postMessage({ id, job, spec })
  }
}
