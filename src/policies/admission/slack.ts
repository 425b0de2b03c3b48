/** SLACK: the stall that this prefill adds must not push a running stream over its token deadlines. */
import { pairsOfJob } from '../job.ts'
import { stallMs } from '../outlook.ts'
import type { AdmissionGate } from './gate.ts'

export const slack: AdmissionGate = {
  name: 'slack',
  passes({ view, job, uncachedTokens, roomRatio }) {
    if (view.ledger.decoding.size === 0) return true
    return stallMs(view, uncachedTokens, pairsOfJob(job, uncachedTokens)) <= view.bearableStallMs * roomRatio
  },
}
