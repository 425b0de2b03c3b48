/** SLOTS: one request more than the engine runs at once may stand ready, so that a freed slot never idles. */
import type { AdmissionGate } from './gate.ts'

export const slots: AdmissionGate = {
  name: 'slots',
  passes({ view, job, roomRatio }) {
    const taken = view.ledger.inFlightSequences
    if (taken === 0) return true
    const spare = roomRatio < 1 ? 0 : 1
    return taken + job.waiter.offer.sequences <= view.slots * roomRatio + spare
  },
}
