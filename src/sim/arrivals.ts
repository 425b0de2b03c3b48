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
  const { periodMs, pieces } = shapeOf(rhythm)
  const firstIndex = Math.max(0, Math.floor(fromMs / periodMs) - 1) * pieces
  for (let index = firstIndex; ; index++) {
    const piece = pieceOf(rhythm, index)
    if (piece.fromMs >= toMs) return segments
    const [startMs, endMs] = [Math.max(piece.fromMs, fromMs), Math.min(piece.toMs, toMs)]
    if (startMs >= endMs) continue
    segments.push({
      durationMs: endMs - startMs,
      fromPerSec: meanPerSec * ratioAt(piece, startMs),
      toPerSec: meanPerSec * ratioAt(piece, endMs),
    })
  }
}

/** A stretch over which the rate, in times of the mean, goes straight from one value to another. */
interface Piece {
  readonly fromMs: Ms
  readonly toMs: Ms
  readonly fromRatio: number
  readonly toRatio: number
}

function shapeOf(rhythm: Rhythm): { periodMs: Ms; pieces: number } {
  return rhythm.kind === 'onOff'
    ? { periodMs: rhythm.onMs + rhythm.offMs, pieces: 2 }
    : { periodMs: rhythm.periodMs, pieces: LINES_PER_PERIOD }
}

/** The pieces are numbered from the start of the rhythm; each begins exactly where the one before ends. */
function pieceOf(rhythm: Rhythm, index: number): Piece {
  const beginningOf = (at: number): Ms => {
    const { periodMs, pieces } = shapeOf(rhythm)
    const insideMs = rhythm.kind === 'onOff' ? rhythm.offMs : periodMs / pieces
    return Math.floor(at / pieces) * periodMs + (at % pieces) * insideMs
  }
  const [fromMs, toMs] = [beginningOf(index), beginningOf(index + 1)]
  if (rhythm.kind === 'onOff') {
    const ratio = index % 2 === 0 ? offRatio(rhythm) : rhythm.onRatio
    return { fromMs, toMs, fromRatio: ratio, toRatio: ratio }
  }
  const heightAt = (at: number) => 1 - rhythm.swingRatio * Math.cos((2 * Math.PI * at) / LINES_PER_PERIOD)
  return { fromMs, toMs, fromRatio: heightAt(index), toRatio: heightAt(index + 1) }
}

function ratioAt({ fromMs, toMs, fromRatio, toRatio }: Piece, atMs: Ms): number {
  return Math.max(0, fromRatio + ((toRatio - fromRatio) * (atMs - fromMs)) / (toMs - fromMs))
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
