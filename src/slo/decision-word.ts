/** What a request that was let in is called by the `x-sluice-decision` header, by its log line and by reports. */
import type { Ms } from '../core/units.ts'

export type AdmittedWord = 'admitted' | 'queued' | 'rerouted'

/** Waiting in the gate for less than this is not called queued, in ms. */
const QUEUED_MS: Ms = 1

/** `waitedMs` is the gate's own, from the offer to the decision: reading and parsing a request is no queue. */
export function admittedWord(attempt: number, waitedMs: Ms): AdmittedWord {
  if (attempt > 1) return 'rerouted'
  return waitedMs >= QUEUED_MS ? 'queued' : 'admitted'
}
