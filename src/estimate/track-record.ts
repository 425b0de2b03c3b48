/** Keeps how predictions came true: what trust in them rests on. */
import { type Offer, ttftTargetMs } from '../core/request.ts'
import type { Ms, Ratio } from '../core/units.ts'
import { sureMissRatio, type TrustEvidence } from './trust.ts'

/** Running means; plain values. */
export type TrackRecord = {
  -readonly [key in keyof Omit<TrustEvidence, 'prefillWindows'>]: TrustEvidence[key]
}

/** What was said of a first token when its request was dispatched. */
export interface Said {
  /** From dispatch, in ms: as likely as not, and at the 80 % level. */
  readonly medianMs: Ms
  readonly boundMs: Ms
  /** The promise was called a sure miss: when it would be broken, in ms from dispatch. */
  readonly missedAfterMs: Ms | undefined
}

/** Shares of a new comparison in the means: about the last 20, 200 and 50 count. */
const ERROR_SHARE: Ratio = 0.05
const COVERAGE_SHARE: Ratio = 0.005
const FALSE_ALARM_SHARE: Ratio = 0.02

export function trackRecord(): TrackRecord {
  return { comparisons: 0, absLogError: 0, coverageRatio: 0, missesTested: 0, falseAlarmRatio: 0 }
}

/** What is put on record of a first token that is predicted for `medianMs` and `boundMs` from now. */
export function said(offer: Offer, medianMs: Ms, boundMs: Ms, nowMs: Ms): Said {
  const targetMs = ttftTargetMs(offer.slo, offer.promptTokens)
  const leftMs = targetMs === undefined ? Number.POSITIVE_INFINITY : offer.receivedAtMs + targetMs - nowMs
  // What is late already is a fact and tests no prediction.
  const isSureMiss = leftMs > 0 && medianMs > leftMs * sureMissRatio('trusted')
  return { medianMs, boundMs, missedAfterMs: isSureMiss ? leftMs : undefined }
}

/**
 * Compares a first token with what was said. Requests that were called lost and were served all the same (nobody else
 * wanted the replica, their class may be late, or a probe) show whether those that were shed would have been late.
 */
export function compare(record: TrackRecord, { medianMs, boundMs, missedAfterMs }: Said, tookMs: Ms): void {
  if (!(tookMs > 0)) return
  const errorShare = Math.max(ERROR_SHARE, 1 / (record.comparisons + 1))
  record.absLogError += errorShare * (Math.abs(Math.log(tookMs / medianMs)) - record.absLogError)
  const coverageShare = Math.max(COVERAGE_SHARE, 1 / (record.comparisons + 1))
  record.coverageRatio += coverageShare * ((tookMs <= boundMs ? 1 : 0) - record.coverageRatio)
  record.comparisons++
  if (missedAfterMs === undefined) return
  const alarmShare = Math.max(FALSE_ALARM_SHARE, 1 / (record.missesTested + 1))
  record.falseAlarmRatio += alarmShare * ((tookMs <= missedAfterMs ? 1 : 0) - record.falseAlarmRatio)
  record.missesTested++
}
