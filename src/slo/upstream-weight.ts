/** Turns what a fleet can carry of what is offered to it into a weight for load balancers upstream: slowly, and never to nothing. */
import { clamp, type Ms, type Ratio } from '../core/units.ts'

/** One model's fleet against its demand. */
export interface Headroom {
  readonly requestsPerSec: number
  /** Replicas that take work over replicas that would keep the objectives. */
  readonly ratio: Ratio
}

/** Overload is no fault of an instance: it always keeps this share of its usual traffic. */
export const LEAST_WEIGHT_RATIO = 0.1

/** Demand is a mean over five minutes, so a weight that moved faster would overshoot. */
const SETTLING_MS: Ms = 300_000
/** Between these the weight stays: demand and prediction waver by about as much. */
const FALLS_BELOW_RATIO = 0.95
const RISES_ABOVE_RATIO = 1.1
/** Of more or less than that, no more is believed. */
const MOST_HEADROOM_RATIO = 2

/**
 * Below 1: the share of what is offered that could be kept, over all models. From 1 on: the headroom of the model that
 * has least. Undefined when nothing is known, or nothing asked for.
 */
export function headroomRatio(models: readonly Headroom[]): Ratio | undefined {
  const asked = models.filter(({ requestsPerSec }) => requestsPerSec > 0)
  const offered = asked.reduce((sum, { requestsPerSec }) => sum + requestsPerSec, 0)
  if (offered === 0) return undefined
  const kept = asked.reduce((sum, { requestsPerSec, ratio }) => sum + requestsPerSec * Math.min(1, ratio), 0)
  return kept < offered ? kept / offered : Math.min(...asked.map(({ ratio }) => ratio))
}

/** The weight of one instance, 1 being its usual share of traffic. */
export class UpstreamWeight {
  #ratio: Ratio = 1
  #headroom: Ratio | undefined
  #lastMs: Ms

  constructor(nowMs: Ms) {
    this.#lastMs = nowMs
  }

  get ratio(): Ratio {
    return this.#ratio
  }

  /** What it was last told. */
  get headroom(): Ratio | undefined {
    return this.#headroom
  }

  /** Moves towards what would fit: e-fold in five minutes at e-fold headroom. Where nothing is known it goes back to 1. */
  update(headroom: Ratio | undefined, nowMs: Ms): void {
    const elapsedMs = clamp(nowMs - this.#lastMs, 0, SETTLING_MS)
    this.#lastMs = nowMs
    this.#headroom = headroom
    const pull = clamp(headroom ?? MOST_HEADROOM_RATIO, 1 / MOST_HEADROOM_RATIO, MOST_HEADROOM_RATIO)
    if (pull >= FALLS_BELOW_RATIO && pull <= RISES_ABOVE_RATIO) return
    this.#ratio = clamp(this.#ratio * pull ** (elapsedMs / SETTLING_MS), LEAST_WEIGHT_RATIO, 1)
  }
}

/** For agents that want whole percents; rounded down, and never 0. */
export function weightPercent(ratio: Ratio): number {
  return Math.max(1, Math.floor(ratio * 100 + 1e-6))
}
