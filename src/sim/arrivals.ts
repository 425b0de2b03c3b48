/** Arrival processes as plain values: how bursty the gaps are and how the rate goes up and down. */
import type { Ms, Ratio } from '../core/units.ts'
import type { RateSegment } from './rates.ts'

/** How the rate moves around its mean. The mean is exact over whole periods only. */
export type Rhythm =
  /** Bursts at `onRatio` times the mean for `onMs`, after `offMs` at what is then left of it. */
  | { readonly kind: 'onOff'; readonly onMs: Ms; readonly offMs: Ms; readonly onRatio: number }
  /** A day: from the mean less `swingRatio` of it up to the mean plus that, and back. Starts at the lowest point. */
  | { readonly kind: 'diurnal'; readonly periodMs: Ms; readonly swingRatio: Ratio }

export interface Arrivals {
  /** Coefficient of variation of the gaps at a steady rate: 1 (default) is Poisson, more is gamma bursts. */
  readonly gapCv?: number
  /** Default: steady. */
  readonly rhythm?: Rhythm
}

/** The diurnal curve is drawn with that many straight lines a period. */
const LINES_PER_PERIOD = 24

/**
 * The rate over [`fromMs`, `toMs`) of a stream whose mean is `meanPerSec`; the rhythm starts at 0. Throws a RangeError
 * when its numbers contradict each other.
 */
export function rateSegments(
  rhythm: Rhythm | undefined,
  meanPerSec: number,
  fromMs: Ms,
  toMs: Ms,
): readonly RateSegment[] {
  if (rhythm === undefined) return [{ durationMs: toMs - fromMs, fromPerSec: meanPerSec }]
  checkRhythm(rhythm)
  const segments: RateSegment[] = []
  for (let atMs = fromMs; atMs < toMs; ) {
    const { endsAtMs, ratioAt } = pieceAt(rhythm, atMs)
    const untilMs = Math.min(endsAtMs, toMs)
    segments.push({
      durationMs: untilMs - atMs,
      fromPerSec: meanPerSec * ratioAt(atMs),
      toPerSec: meanPerSec * ratioAt(untilMs),
    })
    atMs = untilMs
  }
  return segments
}

/** The straight piece of the rhythm that begins at or before `atMs`: when it ends and its value within. */
function pieceAt(rhythm: Rhythm, atMs: Ms): { endsAtMs: Ms; ratioAt: (atMs: Ms) => number } {
  if (rhythm.kind === 'onOff') {
    const { onMs, offMs } = rhythm
    const startMs = Math.floor(atMs / (onMs + offMs)) * (onMs + offMs)
    const isOn = atMs >= startMs + offMs
    const ratio = isOn ? rhythm.onRatio : offRatio(rhythm)
    return { endsAtMs: startMs + offMs + (isOn ? onMs : 0), ratioAt: () => ratio }
  }
  const lineMs = rhythm.periodMs / LINES_PER_PERIOD
  const line = Math.floor(atMs / lineMs)
  const heightAt = (end: number) => 1 - rhythm.swingRatio * Math.cos((2 * Math.PI * end) / LINES_PER_PERIOD)
  const slope = (heightAt(line + 1) - heightAt(line)) / lineMs
  return {
    endsAtMs: (line + 1) * lineMs,
    ratioAt: (instantMs) => Math.max(0, heightAt(line) + slope * (instantMs - line * lineMs)),
  }
}

function offRatio({ onMs, offMs, onRatio }: Rhythm & { kind: 'onOff' }): Ratio {
  return (onMs + offMs - onRatio * onMs) / offMs
}

function checkRhythm(rhythm: Rhythm): void {
  if (rhythm.kind === 'diurnal') {
    const { periodMs, swingRatio } = rhythm
    if (periodMs > 0 && swingRatio >= 0 && swingRatio <= 1) return
    throw new RangeError(`a diurnal rhythm needs a period above 0 and a swing of 0 to 1, got ${swingRatio}`)
  }
  const { onMs, offMs, onRatio } = rhythm
  if (onMs > 0 && offMs > 0 && onRatio >= 0 && offRatio(rhythm) >= 0) return
  throw new RangeError(
    `bursts of ${onRatio} times the mean for ${onMs} of ${onMs + offMs} ms leave less than nothing between them`,
  )
}
