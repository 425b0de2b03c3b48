/** DEPTH: only about a chunk is pushed into an engine, since it can't be reordered there; nothing behind an overdue one. */
import type { Tokens } from '../../core/units.ts'
import type { Outlook } from '../outlook.ts'
import type { AdmissionGate } from './gate.ts'

export const depth: AdmissionGate = {
  name: 'depth',
  passes: ({ view, uncachedTokens, depthTokens, roomRatio }) =>
    fitsDepth(view, uncachedTokens, depthTokens * roomRatio),
}

/**
 * True when nothing is left to prefill there, or the backlog with so many tokens more stays within that and gets done.
 * Engines for prompts alone have nothing left long before a first token tells.
 */
export function fitsDepth(view: Outlook, uncachedTokens: Tokens, room: Tokens): boolean {
  const { ledger, backlogTokens, headOverdue } = view
  if (ledger.prefilling.size === 0) return true
  return !headOverdue && (backlogTokens === 0 || backlogTokens + uncachedTokens <= room)
}
