/** DEPTH: only about a chunk is pushed into an engine, since it can't be reordered there; nothing behind an overdue one. */
import type { Tokens } from '../../core/units.ts'
import type { Outlook } from '../outlook.ts'
import type { AdmissionGate } from './gate.ts'

export const depth: AdmissionGate = {
  name: 'depth',
  passes: ({ view, uncachedTokens, depthTokens, roomRatio }) =>
    fitsDepth(view, uncachedTokens, depthTokens * roomRatio),
}

/** True when nothing prefills there, or the backlog with so many tokens more stays within that and gets done. */
export function fitsDepth(view: Outlook, uncachedTokens: Tokens, room: Tokens): boolean {
  const { ledger, backlogTokens, headOverdue } = view
  return ledger.prefilling.size === 0 || (!headOverdue && backlogTokens + uncachedTokens <= room)
}
