/** SLOTS: nobody is sent to wait in the engine for a slot; a freed one is filled within a millisecond from here. */
import type { ReplicaLedger } from '../../core/ledger.ts'
import type { Outlook } from '../outlook.ts'
import type { AdmissionGate } from './gate.ts'

export const slots: AdmissionGate = {
  name: 'slots',
  passes: ({ view, job, roomRatio }) => fitsSlots(view, job.waiter.offer.sequences, roomRatio),
}

/** True when nothing runs there, or that part of the slots holds so many sequences more. */
export function fitsSlots({ ledger, slots: count }: Outlook, sequences: number, roomRatio: number): boolean {
  const taken = ledger.inFlightSequences
  if (taken === 0) return true
  return taken + sequences <= count * roomRatio + (roomRatio < 1 ? 0 : spareSlots(ledger))
}

/** Slots that were learnt are tried with one request more, or a number once learnt too low would stay. */
export function spareSlots(ledger: ReplicaLedger): number {
  return ledger.report.limits.maxNumSeqs === undefined ? 1 : 0
}
