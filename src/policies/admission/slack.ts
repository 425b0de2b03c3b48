/** SLACK: the stall that this prefill adds must not push a running stream over its token deadlines. */
import { stallMs } from '../outlook.ts'
import type { AdmissionGate } from './gate.ts'

export const slack: AdmissionGate = {
  name: 'slack',
  passes({ view, uncachedTokens, roomRatio }) {
    if (view.ledger.decoding.size === 0) return true
    return stallMs(view, uncachedTokens) <= view.bearableStallMs * roomRatio
  },
}
