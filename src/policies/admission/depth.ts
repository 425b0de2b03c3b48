/**
 * DEPTH: what is pushed into an engine can't be reordered any more, so only about one chunk of backlog is, and nothing
 * behind a prompt that the engine does not begin.
 */
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
