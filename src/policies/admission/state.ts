/** STATE: new work goes only to replicas that take it; one that has just come back takes one prompt at a time. */
import { mayServe } from '../../core/eligible.ts'
import type { Ms } from '../../core/units.ts'
import type { Job } from '../job.ts'
import type { Outlook } from '../outlook.ts'
import type { AdmissionGate } from './gate.ts'

export const state: AdmissionGate = {
  name: 'state',
  passes: ({ view, job, nowMs }) => takesNow(view, job, nowMs),
}

/** True when the replica may have the job at all, now. */
export function takesNow({ ledger }: Outlook, { waiter }: Job, nowMs: Ms): boolean {
  const { report, prefilling, fullUntilAtMs } = ledger
  if (!mayServe(waiter, report) || fullUntilAtMs > nowMs) return false
  return report.state === 'live' || (report.state === 'ramping' && prefilling.size === 0)
}
