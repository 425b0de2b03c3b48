/** DEPTH: what is pushed into an engine can't be reordered any more, so only about one chunk of backlog is. */
import type { Tokens } from '../../core/units.ts'
import type { Outlook } from '../outlook.ts'
import type { AdmissionGate } from './gate.ts'

export const depth: AdmissionGate = {
  name: 'depth',
  passes: ({ view, uncachedTokens, depthTokens, roomRatio }) =>
    fitsDepth(view, uncachedTokens, depthTokens * roomRatio),
}

/** True when nothing prefills there, or the backlog with so many tokens more stays within that. */
export function fitsDepth({ ledger, backlogTokens }: Outlook, uncachedTokens: Tokens, room: Tokens): boolean {
  return ledger.prefilling.size === 0 || backlogTokens + uncachedTokens <= room
}
