/** Writes numbers the way people read them, for the console, for `top` and for reports. */
import type { Ms, Ratio } from '../core/units.ts'

/** Stands for a number that there is not. */
export const NOTHING = '–'

/** Milliseconds: `38 ms`, `1.24 s`, `-14.1 s`. */
export function shownMs(ms: Ms | undefined): string {
  if (ms === undefined) return NOTHING
  if (ms < 0) return `-${shownMs(-ms)}`
  return ms < 1000 ? `${ms.toFixed(ms < 10 ? 1 : 0)} ms` : `${(ms / 1000).toFixed(ms < 10_000 ? 2 : 1)} s`
}

/** A rate per second, with two digits where they tell. */
export function shownRate(perSec: number): string {
  return perSec.toFixed(perSec < 100 ? 2 : 0)
}

/** A share of requests, cut and never rounded up: what is short of 100 % must not read as 100 %. */
export function shownAttainment(ratio: Ratio | undefined): string {
  if (ratio === undefined || !Number.isFinite(ratio)) return NOTHING
  const factor = ratio >= 0.9 ? 1e4 : 1e3
  const cut = Math.floor(ratio * factor + 1e-6) / factor
  const digits = ratio >= 1 || ratio === 0 ? 0 : ratio >= 0.9 ? 2 : 1
  return `${(cut * 100).toFixed(digits)} %`
}

/** A target in percent, as short as it was written: `99 %`, `99.95 %`. */
export function shownObjective(ratio: Ratio | undefined): string {
  return ratio === undefined ? NOTHING : `${Number((ratio * 100).toFixed(4))} %`
}

/** What is left of an error budget: a share of it, or how many times over it is spent. */
export function shownBudget(remainingRatio: number | undefined): string {
  if (remainingRatio === undefined) return NOTHING
  if (remainingRatio < 0) return `spent ${shownTimes(1 - remainingRatio)}`
  return `${Math.floor(remainingRatio * 100 + 1e-6)} %`
}

/** A factor: `0.4×`, `14.4×`, `120×`. */
export function shownTimes(factor: number | undefined): string {
  if (factor === undefined) return NOTHING
  if (!Number.isFinite(factor)) return '∞×'
  return `${factor >= 100 ? factor.toFixed(0) : Number(factor.toFixed(1))}×`
}

/** A plain share, e.g. of KV memory: `42 %`. */
export function shownPercent(ratio: Ratio | undefined): string {
  return ratio === undefined || !Number.isFinite(ratio) ? NOTHING : `${Math.round(ratio * 100)} %`
}

/** A count, short from 10 000 on: `940`, `8450`, `12.4k`, `3.1M`. */
export function shownCount(count: number | undefined): string {
  if (count === undefined || !Number.isFinite(count)) return NOTHING
  if (count < 10_000) return String(Math.round(count))
  return count < 1e6 ? `${(count / 1e3).toFixed(1)}k` : `${(count / 1e6).toFixed(1)}M`
}

/** A stretch of time in its largest unit: `40 s`, `12 min`, `5 h`, `3 d`. */
export function shownSpan(ms: Ms): string {
  if (ms < 90_000) return `${Math.round(ms / 1000)} s`
  if (ms < 90 * 60_000) return `${Math.round(ms / 60_000)} min`
  return ms < 36 * 3_600_000 ? `${Math.round(ms / 3_600_000)} h` : `${Math.round(ms / 86_400_000)} d`
}

/** The time of day in UTC: `14:03:07`. */
export function shownClock(unixMs: Ms): string {
  return new Date(unixMs).toISOString().slice(11, 19)
}

/** `1 request`, `2 requests`. */
export function counted(count: number, noun: string): string {
  return `${shownCount(count)} ${noun}${count === 1 ? '' : 's'}`
}

/** `a`, `a and b`, `a, b and c`. */
export function listed(names: readonly string[]): string {
  if (names.length < 2) return names[0] ?? ''
  return `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`
}
