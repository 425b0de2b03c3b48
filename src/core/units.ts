/** The units that every number in Sluice carries in its name. */

/** A span or an instant in milliseconds. Instants (`…AtMs`) share one monotonic origin per process. */
export type Ms = number
/** The longest delay that Node's timers take, in ms; a longer one would fire at once. */
export const MAX_DELAY_MS: Ms = 2 ** 31 - 1
/** A count of model tokens; estimates may be fractional until they are shown. */
export type Tokens = number
/** One amount over another of its kind: a share from 0 to 1, or a factor (`speedRatio`, `lengthRatio`), which may be larger. */
export type Ratio = number

/** Returns `value` when it is a finite number, else throws a RangeError that names it: a caller's bug. */
export function finite(name: string, value: number): number {
  if (!Number.isFinite(value)) throw new RangeError(`${name} must be a finite number, got ${value}`)
  return value
}

/** Keeps `value` within [`min`, `max`]. */
export function clamp(value: number, min: number, max: number): number {
  return Math.max(min, Math.min(max, value))
}
