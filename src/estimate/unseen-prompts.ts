/** Prompts whose first token nobody sees, since their answers don't stream: which of them an engine has computed. */
import { type InFlight, pairsOf } from '../core/ledger.ts'
import type { Tokens } from '../core/units.ts'

/** What an engine has to compute of prompts. */
export interface PrefillWork {
  prefillTokens: Tokens
  /** Their `attentionPairs`. */
  pairs: number
  chunks: number
}

/** Those of one replica. Engines take prompts in order, so whoever is seen to be done tells of all before it. */
export interface UnseenPrompts {
  /** Not known to be computed, in order of dispatch. Each is in flight. */
  readonly sent: InFlight[]
  /** What was computed since the last first token there. */
  readonly done: PrefillWork
}

export function noWork(): PrefillWork {
  return { prefillTokens: 0, pairs: 0, chunks: 0 }
}

export function unseenPrompts(): UnseenPrompts {
  return { sent: [], done: noWork() }
}

/** Adds a prompt, or its part in one of `share` engines, in chunks of at most `chunkTokens`. */
export function addPrompt(work: PrefillWork, inFlight: InFlight, chunkTokens: Tokens, share = 1): void {
  const { uncachedTokens } = inFlight
  work.prefillTokens += uncachedTokens / share
  work.pairs += pairsOf(inFlight) / share
  work.chunks += Math.max(1, Math.ceil(uncachedTokens / chunkTokens)) / share
}

/** A prompt was sent; remembers it if its first token will not be seen. */
export function unseenSent({ sent }: UnseenPrompts, inFlight: InFlight): void {
  const { streamed, kind } = inFlight.offer
  if (!streamed && kind !== 'convert') sent.push(inFlight)
}

/** The first token of `seen` has come: what was computed before it goes into `work`. */
export function takeUnseen(
  unseen: UnseenPrompts,
  work: PrefillWork,
  seen: InFlight,
  chunkTokens: Tokens,
): void {
  const { sent, done } = unseen
  const later = sent.findIndex(({ permitId }) => permitId > seen.permitId)
  computed(unseen, later < 0 ? sent.length : later, chunkTokens)
  work.prefillTokens += done.prefillTokens
  work.pairs += done.pairs
  work.chunks += done.chunks
  Object.assign(done, noWork())
}

/** It was given back, `completed` or not. Returns false when nobody can say whether its prompt was computed. */
export function unseenReleased(
  unseen: UnseenPrompts,
  inFlight: InFlight,
  completed: boolean,
  chunkTokens: Tokens,
): boolean {
  const at = unseen.sent.indexOf(inFlight)
  if (at < 0) return true
  if (completed) computed(unseen, at + 1, chunkTokens)
  else unseen.sent.splice(at, 1)
  return completed
}

/** Whatever was sent is taken to have been computed before now. */
export function forgetUnseen({ sent, done }: UnseenPrompts): void {
  sent.length = 0
  Object.assign(done, noWork())
}

/** The first `count` are done. */
function computed({ sent, done }: UnseenPrompts, count: number, chunkTokens: Tokens): void {
  for (const inFlight of sent.splice(0, count)) addPrompt(done, inFlight, chunkTokens)
}
