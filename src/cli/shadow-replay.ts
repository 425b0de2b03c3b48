/** In shadow mode: replays the last minutes in simulation each minute, as they were run and enforced, beside the traffic. */
import { Worker } from 'node:worker_threads'
import type { Config } from '../config/config.ts'
import type { Settlement } from '../core/records.ts'
import type { Ms } from '../core/units.ts'
import { loggedFrom } from '../replay/from-settlement.ts'
import type { LoggedRequest } from '../replay/logged-request.ts'
import { present } from '../replay/present.ts'
import type { ShadowEstimate } from '../telemetry/shadow-estimate.ts'
import type { Clock, Stop } from '../upstream/clock.ts'
import type { Replay } from './replay-run.ts'

export interface ShadowJob {
  readonly requests: readonly LoggedRequest[]
  readonly config: Config
}

export interface ShadowPorts {
  readonly config: () => Config
  readonly nowMs: () => Ms
  /** Undefined when the requests say too little. Rejects for a fault. */
  readonly run: (job: ShadowJob) => Promise<Replay | undefined>
  readonly onEstimate: (estimate: ShadowEstimate | undefined) => void
  readonly onFault: (error: unknown) => void
}

export const ESTIMATE_EVERY_MS: Ms = 60_000
/** What is looked back on: so long, and so many requests at most, which take about two seconds of another core. */
const SPAN_MS: Ms = 15 * 60_000
const MOST_REQUESTS = 5000
const FEWEST_REQUESTS = 100
/** A simulation that takes longer than this is given up. */
const PATIENCE_MS: Ms = 50_000

export class ShadowReplay {
  readonly #ports: ShadowPorts
  #requests: LoggedRequest[] = []
  #running = false

  constructor(ports: ShadowPorts) {
    this.#ports = ports
  }

  /** Remembers a request that has ended; outside shadow mode it forgets all of them. */
  note(settlement: Settlement): void {
    if (this.#ports.config().mode !== 'shadow') {
      this.#requests = []
      return
    }
    this.#requests.push(loggedFrom(settlement))
    if (this.#requests.length > 2 * MOST_REQUESTS) this.#requests = this.#requests.slice(-MOST_REQUESTS)
  }

  /** Looks once; resolves when the look is over. Never rejects, and looks again only when that look is over. */
  async look(): Promise<void> {
    const { config, run, onEstimate, onFault, nowMs } = this.#ports
    if (this.#running) return
    const atMs = nowMs()
    const requests = this.#requests
      .filter(({ arrivedAtMs }) => arrivedAtMs >= atMs - SPAN_MS)
      .slice(-MOST_REQUESTS)
      .sort((a, b) => a.arrivedAtMs - b.arrivedAtMs)
    if (config().mode !== 'shadow' || requests.length < FEWEST_REQUESTS) return onEstimate(undefined)
    this.#running = true
    try {
      const replayed = await run({ requests, config: config() })
      onEstimate(replayed === undefined ? undefined : estimateOf(replayed, atMs))
    } catch (error) {
      onEstimate(undefined)
      onFault(error)
    } finally {
      this.#running = false
    }
  }

  watch(clock: Clock): Stop {
    return clock.every(ESTIMATE_EVERY_MS, () => void this.look())
  }
}

function estimateOf({ groups, fromUnixMs, toUnixMs }: Replay, atMs: Ms): ShadowEstimate {
  return {
    atMs,
    spanMs: toUnixMs - fromUnixMs,
    classes: groups.map(({ model, class: className, logged, was, now }) => ({
      model,
      class: className,
      requests: logged.good + logged.bad,
      ...present('measuredRatio', logged.attainmentRatio),
      ...present('shadowRatio', was?.attainmentRatio),
      ...present('enforcedRatio', now.attainmentRatio),
    })),
  }
}

/** Replays in a thread of its own, which ends with its answer. */
export function replayInThread(job: ShadowJob): Promise<Replay | undefined> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(new URL('./shadow-worker.js', import.meta.url), { workerData: job })
    worker.unref()
    const timer = setTimeout(() => {
      reject(new Error(`an estimate of ${job.requests.length} requests took more than ${PATIENCE_MS} ms`))
      void worker.terminate()
    }, PATIENCE_MS)
    timer.unref()
    worker.once('message', (answer: Replay | null) => resolve(answer ?? undefined))
    worker.once('error', reject)
    worker.once('exit', (code) => {
      clearTimeout(timer)
      reject(new Error(`the estimate ended with ${code}`))
    })
  })
}
