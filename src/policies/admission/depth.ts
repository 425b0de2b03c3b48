/** DEPTH: what is pushed into an engine can't be reordered any more, so only about one chunk of backlog is. */
import type { AdmissionGate } from './gate.ts'

export const depth: AdmissionGate = {
  name: 'depth',
  passes({ view, uncachedTokens, depthTokens, roomRatio }) {
    if (view.ledger.prefilling.size === 0) return true
    return view.backlogTokens + uncachedTokens <= depthTokens * roomRatio
  },
}
