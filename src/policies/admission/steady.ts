/** STEADY: with this request decoding too, a step and the prefill that renews the batch must meet every TPOT target. */
import { TPOT_USE_RATIO } from '../../estimate/margins.ts'
import { cautiousDecodeStepMs } from '../../estimate/step-model.ts'
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
    const renewedMs = stepMs + view.renewalMs * (ledger.inFlightSequences + sequences)
    return renewedMs <= boundMs * TPOT_USE_RATIO * roomRatio
  },
}
