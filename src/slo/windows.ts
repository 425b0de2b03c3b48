/** The stretches of time over which attainment is told, from the last minutes to the whole period of the objective. */
import type { Ms } from '../core/units.ts'

export const MINUTE_MS: Ms = 60_000
export const HOUR_MS: Ms = 60 * MINUTE_MS
export const DAY_MS: Ms = 24 * HOUR_MS

/** `period` is the one that the objective is promised for (`slo.window` in the file). */
export type WindowName = '5m' | '30m' | '1h' | '2h' | '6h' | '1d' | '3d' | 'period'

export interface WindowSpec {
  readonly name: WindowName
  readonly spanMs: Ms
  /** Slices of its ring: a sum may reach back one slice too far, never too short. */
  readonly slices: number
}

/** Every window, shortest first. Windows longer than the period are cut to it. */
export function windowsFor(periodMs: Ms): readonly WindowSpec[] {
  const fixed: readonly WindowSpec[] = [
    { name: '5m', spanMs: 5 * MINUTE_MS, slices: 20 },
    { name: '30m', spanMs: 30 * MINUTE_MS, slices: 30 },
    { name: '1h', spanMs: HOUR_MS, slices: 30 },
    { name: '2h', spanMs: 2 * HOUR_MS, slices: 30 },
    { name: '6h', spanMs: 6 * HOUR_MS, slices: 36 },
    { name: '1d', spanMs: DAY_MS, slices: 36 },
    { name: '3d', spanMs: 3 * DAY_MS, slices: 36 },
  ]
  const cut = fixed.map((window) => ({ ...window, spanMs: Math.min(window.spanMs, periodMs) }))
  return [...cut, { name: 'period', spanMs: periodMs, slices: 60 }]
}

/**
 * Turns a clock that may jump into one that only runs forward: a step back of more than `JITTER_MS` is taken as a new
 * origin, and no time has passed; a smaller one is jitter between callers, and time stands still until it is made up.
 */
export class ForwardClock {
  #lastMs: Ms | undefined
  #elapsedMs: Ms = 0

  /** Time since the first reading, in ms. Readings that are no finite number count as no time passed. */
  at(nowMs: Ms): Ms {
    if (!Number.isFinite(nowMs)) return this.#elapsedMs
    const stepMs = nowMs - (this.#lastMs ?? nowMs)
    if (stepMs >= 0) this.#elapsedMs += stepMs
    if (this.#lastMs === undefined || stepMs >= 0 || stepMs < -JITTER_MS) this.#lastMs = nowMs
    return this.#elapsedMs
  }
}

const JITTER_MS: Ms = 5000
