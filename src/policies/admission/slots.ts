/** SLOTS: nobody is sent to wait in the engine for a slot; a freed one is filled within a millisecond from here. */
import type { ReplicaLedger } from '../../core/ledger.ts'
import type { AdmissionGate } from './gate.ts'

export const slots: AdmissionGate = {
  name: 'slots',
  passes({ view, job, roomRatio }) {
    const taken = view.ledger.inFlightSequences
    if (taken === 0) return true
    const spare = roomRatio < 1 ? 0 : spareSlots(view.ledger)
    return taken + job.waiter.offer.sequences <= view.slots * roomRatio + spare
  },
}

/** Slots that were learnt are tried with one request more, or a number once learnt too low would stay. */
export function spareSlots(ledger: ReplicaLedger): number {
  return ledger.report.limits.maxNumSeqs === undefined ? 1 : 0
}
