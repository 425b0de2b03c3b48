/** STEADY: with this request decoding too, a plain decode step must still meet every TPOT target there. */
import { cautiousDecodeStepMs } from '../../estimate/step-model.ts'
import { TPOT_USE_RATIO } from '../outlook.ts'
import type { AdmissionGate } from './gate.ts'

export const steady: AdmissionGate = {
  name: 'steady',
  passes({ view, job, roomRatio }) {
    const { ledger, model, tightestTpotMs } = view
    if (ledger.inFlightRequests === 0) return true
    const boundMs = Math.min(tightestTpotMs, job.tpotMs ?? Number.POSITIVE_INFINITY)
    if (!Number.isFinite(boundMs)) return true
    const { sequences, promptTokens } = job.waiter.offer
    const stepMs = cautiousDecodeStepMs(
      model,
      ledger.inFlightSequences + sequences,
      ledger.contextTokens + promptTokens,
    )
    return stepMs <= boundMs * TPOT_USE_RATIO * roomRatio
  },
}
