/** Runs the ramps of the demo: the same seeded requests to both fleets at once, counted apart. */
import type { Ms } from '../core/units.ts'
import { type LoopLag, measureLoopLag } from '../load/loop-lag.ts'
import { type LoadPhase, planLoad } from '../load/plan.ts'
import { createRecentResults, type RecentResults } from '../load/recent.ts'
import { runLoad } from '../load/run.ts'
import { createTally, type Tally } from '../load/tally.ts'
import type { Capacity } from '../sim/capacity.ts'
import type { DemoFleets } from './demo-fleets.ts'
import { type DemoReport, type FleetName, lastedPhases, reportDemo } from './demo-report.ts'
import { DEMO_CLASSES, DEMO_LENGTH_RATIO, DEMO_MODEL } from './demo-scenario.ts'
import { type DemoNow, type FleetNow, RECENT_MS } from './demo-screen.ts'

/** What is still open that long after a ramp has missed every target but the longest, and is left. */
const DRAIN_MS: Ms = 3000

interface FleetBooks {
  readonly urls: readonly string[]
  readonly tally: Tally
  readonly recent: RecentResults
}

export interface DemoRun {
  /** Runs one ramp more, or part of it when the signal fires. */
  ramp(signal: AbortSignal): Promise<void>
  now(): DemoNow
  report(): DemoReport
  stop(): void
}

/** Opens the books of a demo. `stop` ends what it measures. */
export function createDemoRun(
  fleets: Pick<DemoFleets, 'bareUrls' | 'sluiceUrl'>,
  phases: readonly LoadPhase[],
  capacity: Capacity,
  seed: number,
): DemoRun {
  return new Run(fleets, phases, capacity, seed)
}

class Run implements DemoRun {
  readonly #books: Readonly<Record<FleetName, FleetBooks>>
  readonly #phases: readonly LoadPhase[]
  readonly #capacity: Capacity
  readonly #seed: number
  readonly #lag: LoopLag = measureLoopLag()
  #ramps = 0
  #startedAtMs: Ms | undefined

  constructor(
    fleets: Pick<DemoFleets, 'bareUrls' | 'sluiceUrl'>,
    phases: readonly LoadPhase[],
    capacity: Capacity,
    seed: number,
  ) {
    this.#books = { bare: openBooks(fleets.bareUrls), sluice: openBooks([fleets.sluiceUrl]) }
    this.#phases = phases
    this.#capacity = capacity
    this.#seed = seed
  }

  async ramp(signal: AbortSignal): Promise<void> {
    this.#startedAtMs = performance.now()
    await Promise.all([this.#load(this.#books.bare, signal), this.#load(this.#books.sluice, signal)])
    if (signal.aborted) return
    this.#ramps++
    this.#startedAtMs = undefined
  }

  async #load({ urls, tally, recent }: FleetBooks, signal: AbortSignal): Promise<void> {
    // Another seed each ramp: the same prompts again would be answered from the engines' prefix caches.
    const seed = this.#seed + this.#ramps
    const plan = { seed, phases: this.#phases, classes: DEMO_CLASSES, lengthRatio: DEMO_LENGTH_RATIO }
    await runLoad({
      urls,
      model: DEMO_MODEL,
      plan: planLoad(plan),
      seed,
      lengths: 'simulated',
      drainMs: DRAIN_MS,
      signal,
      onOffered: (planned) => tally.offered(planned),
      onSettled(result) {
        tally.settled(result)
        recent.add(result)
      },
    })
  }

  get #elapsedMs(): Ms {
    return this.#startedAtMs === undefined ? 0 : performance.now() - this.#startedAtMs
  }

  now(): DemoNow {
    const elapsedMs = this.#elapsedMs
    const rampMs = this.#phases.reduce((sum, { durationMs }) => sum + durationMs, 0)
    let endMs = 0
    const phase =
      this.#phases.find(({ durationMs }) => {
        endMs += durationMs
        return elapsedMs < endMs
      }) ?? this.#phases.at(-1)
    return {
      ramp: this.#ramps + 1,
      phase: elapsedMs > rampMs ? 'draining' : (phase?.name ?? ''),
      offeredPerSec: elapsedMs > rampMs ? 0 : (phase?.ratePerSec ?? 0),
      elapsedMs: Math.min(elapsedMs, rampMs),
      rampMs,
      fleets: { bare: fleetNow(this.#books.bare), sluice: fleetNow(this.#books.sluice) },
      report: this.report(),
    }
  }

  report(): DemoReport {
    return reportDemo({
      seed: this.#seed,
      capacityPerSec: this.#capacity.ratePerSec,
      saturatedPerSec: this.#capacity.saturatedPerSec,
      phases: lastedPhases(this.#phases, this.#ramps, this.#elapsedMs),
      tallies: { bare: this.#books.bare.tally, sluice: this.#books.sluice.tally },
      loopLagP99Ms: this.#lag.p99Ms(),
    })
  }

  stop(): void {
    this.#lag.stop()
  }
}

function openBooks(urls: readonly string[]): FleetBooks {
  return { urls, tally: createTally(), recent: createRecentResults(RECENT_MS) }
}

function fleetNow({ tally, recent }: FleetBooks): FleetNow {
  const atMs = performance.now()
  const all = tally.summary()
  return {
    recent: recent.summary(atMs, { promised: true }),
    recentClasses: Object.fromEntries(
      Object.keys(DEMO_CLASSES).map((name) => [name, recent.summary(atMs, { className: name })]),
    ),
    openRequests: all.offeredRequests - all.settledRequests,
  }
}
