/** What one attempt has shown so far: content, times and usage; plain counters, since they move with every chunk. */
import type { Draft } from '../core/draft.ts'
import type { Usage } from '../core/events.ts'
import type { SettleOutcome, SettleReport } from '../core/records.ts'
import type { Ms } from '../core/units.ts'

export interface Tally {
  contentEvents: number
  /** Content events that the gate has not been told of. */
  untoldEvents: number
  firstTokenAtMs: Ms | undefined
  lastTokenAtMs: Ms | undefined
  usage: Usage | undefined
  finishReason: string | undefined
  slowReader: boolean
  /** The type of the first error event inside the stream. */
  engineError: string | undefined
  oversizedFrames: number
  /** Nothing in it can be read, so that none of its tokens is told but the first. */
  opaque: boolean
}

export function newTally(): Tally {
  return {
    contentEvents: 0,
    untoldEvents: 0,
    firstTokenAtMs: undefined,
    lastTokenAtMs: undefined,
    usage: undefined,
    finishReason: undefined,
    slowReader: false,
    engineError: undefined,
    oversizedFrames: 0,
    opaque: false,
  }
}

/** The report with which the permit goes back. */
export function reportOf(tally: Tally, outcome: SettleOutcome, nowMs: Ms): SettleReport {
  const report: Draft<SettleReport> = { outcome, endedAtMs: nowMs, contentEvents: tally.contentEvents }
  if (tally.firstTokenAtMs !== undefined) report.firstTokenAtMs = tally.firstTokenAtMs
  if (tally.lastTokenAtMs !== undefined) report.lastTokenAtMs = tally.lastTokenAtMs
  if (tally.usage !== undefined) report.usage = tally.usage
  if (tally.slowReader) report.slowReader = true
  if (tally.engineError !== undefined) report.engineError = tally.engineError
  if (tally.oversizedFrames > 0) report.oversizedFrames = tally.oversizedFrames
  return report
}
