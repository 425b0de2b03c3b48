/** Arrival instants under a rate that changes over time. */
import type { Ms } from '../core/units.ts'

/** A stretch of time over which the rate goes straight from one value to another. */
export interface RateSegment {
  readonly durationMs: Ms
  readonly fromPerSec: number
  /** Default: the same as `fromPerSec`. */
  readonly toPerSec?: number
}

/** A constant rate. */
export function steadyRate(perSec: number, durationMs: Ms): readonly RateSegment[] {
  return [{ durationMs, fromPerSec: perSec }]
}

/** Total time of the segments. */
export function segmentsMs(segments: readonly RateSegment[]): Ms {
  return segments.reduce((sum, segment) => sum + segment.durationMs, 0)
}

/**
 * Instants (ms after the start) at which the expected number of arrivals so far reaches the running sum of `nextGap`:
 * a renewal stream of unit rate, stretched by the rate. Ends with the last segment. Throws a RangeError for negative
 * rates or durations.
 */
export function* mapToRates(
  segments: readonly RateSegment[],
  nextGap: () => number,
): Generator<Ms, void, undefined> {
  let startMs = 0
  let owed = nextGap()
  for (const segment of segments) {
    const { durationMs, fromPerSec, toPerSec = fromPerSec } = segment
    if (!(durationMs >= 0 && fromPerSec >= 0 && toPerSec >= 0)) {
      throw new RangeError('rate segments need durations and rates of 0 or more')
    }
    const expected = ((fromPerSec + toPerSec) / 2) * (durationMs / 1000)
    let used = 0
    while (used + owed <= expected) {
      used += owed
      yield startMs + solveMs(used, segment)
      owed = nextGap()
    }
    owed -= expected - used
    startMs += durationMs
  }
}

/** When that many arrivals are expected within the segment: the root of from*t + (to-from)*t^2/(2d) = count. */
function solveMs(count: number, segment: RateSegment): Ms {
  const { durationMs, fromPerSec, toPerSec = fromPerSec } = segment
  const durationSec = durationMs / 1000
  const slope = durationSec === 0 ? 0 : (toPerSec - fromPerSec) / durationSec
  // The form with the root in the denominator stays exact when the slope is 0.
  const root = Math.sqrt(Math.max(fromPerSec ** 2 + 2 * slope * count, 0))
  const denominator = fromPerSec + root
  return denominator === 0 ? 0 : Math.min(((2 * count) / denominator) * 1000, durationMs)
}
