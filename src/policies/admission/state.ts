/** STATE: new work goes only to replicas that take it; one that has just come back takes one prompt at a time. */
import { mayServe } from '../../core/eligible.ts'
import type { AdmissionGate } from './gate.ts'

export const state: AdmissionGate = {
  name: 'state',
  passes({ view, job, nowMs }) {
    const { report, prefilling, fullUntilAtMs } = view.ledger
    if (!mayServe(job.waiter, report) || fullUntilAtMs > nowMs) return false
    return report.state === 'live' || (report.state === 'ramping' && prefilling.size === 0)
  },
}
