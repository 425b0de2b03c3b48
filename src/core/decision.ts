/** Makes the one record of a decision from what it saw. */
import type { Advice } from './advice.ts'
import type { Draft } from './draft.ts'
import { type CandidateView, type DecisionRecord, RECORD_VERSION, type Verdict } from './records.ts'
import type { Ms } from './units.ts'
import type { Waiter } from './waiting-room.ts'

/** What was decided about a waiter, and on what grounds. */
export interface Decided {
  readonly verdict: Verdict
  readonly candidates: readonly CandidateView[]
  /** What the advisor would have done; its numbers are shown, since it is the one that predicts. */
  readonly advice: Advice | undefined
  readonly trusted: boolean
  readonly configDigest: string
}

/** The record of a decision at `nowMs`. */
export function decisionRecord(waiter: Waiter, decided: Decided, nowMs: Ms): DecisionRecord {
  const { offer, attempt, enteredAtMs } = waiter
  const { verdict, candidates, advice, trusted, configDigest } = decided
  const record: Draft<DecisionRecord> = {
    version: RECORD_VERSION,
    atMs: nowMs,
    offer,
    attempt,
    waitedMs: nowMs - enteredAtMs,
    trusted,
    candidates: advice?.candidates ?? candidates,
    verdict,
    configDigest,
  }
  if (advice !== undefined) record.wouldHave = advice.verdict
  return record
}
