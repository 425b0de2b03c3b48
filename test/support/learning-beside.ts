/** A scheduler beside which others learn, whatever it decides: what is learnt must not hang on our own decisions. */
import type { Scheduler } from '../../src/core/scheduler.ts'
import type { Learnt } from '../../src/policies/learnt.ts'

/** Decides as `scheduler`, and tells `learnt` of everything. */
export function learningBeside(scheduler: Scheduler, learnt: Learnt): Scheduler {
  return {
    ...scheduler,
    dispatched: (inFlight, ledger, nowMs) => learnt.dispatched(inFlight, ledger, nowMs),
    progress: (ledger, events, nowMs) => learnt.progress(ledger, events, nowMs),
    firstToken: (inFlight, ledger, nowMs) => learnt.firstToken(inFlight, ledger, nowMs),
    settled: (inFlight, ledger, report, _, nowMs) => learnt.released(inFlight, ledger, report, nowMs),
  }
}
