/** An open stretch of decode steps: tokens that have come in it, and sequences over time. */
import { type InFlight, type ReplicaLedger, visibleSequences } from '../core/ledger.ts'
import type { Ms, Tokens } from '../core/units.ts'

/** It is read after so many steps, or when a prefill begins. */
const WINDOW_STEPS = 8
const MIN_STEPS = 2

/**
 * Streams may come and go in it: their number is integrated over time. Answers of which nobody sees the tokens are part
 * of the batch; steps are counted by the others.
 */
export interface DecodeWindow {
  readonly startedAtMs: Ms
  tokens: Tokens
  /** When tokens were last counted; what came later is not in `tokens` yet. */
  countedAtMs: Ms
  /** Sequences times ms up to `countedAtMs`, and since then up to `heldAtMs`. */
  sequenceMs: number
  uncountedSequenceMs: number
  /** The same of those whose tokens are seen. */
  visibleMs: number
  uncountedVisibleMs: number
  heldAtMs: Ms
  heldSequences: number
  heldVisible: number
}

export function openDecode(ledger: ReplicaLedger, nowMs: Ms): DecodeWindow {
  return {
    startedAtMs: nowMs,
    tokens: 0,
    countedAtMs: nowMs,
    sequenceMs: 0,
    uncountedSequenceMs: 0,
    visibleMs: 0,
    uncountedVisibleMs: 0,
    heldAtMs: nowMs,
    heldSequences: ledger.decodingSequences,
    heldVisible: ledger.visibleSequences,
  }
}

/** Integrates the sequences up to now and takes their new number. */
export function hold(open: DecodeWindow, ledger: ReplicaLedger, nowMs: Ms): void {
  const spanMs = nowMs - open.heldAtMs
  open.uncountedSequenceMs += open.heldSequences * spanMs
  open.uncountedVisibleMs += open.heldVisible * spanMs
  open.heldAtMs = nowMs
  open.heldSequences = ledger.decodingSequences
  open.heldVisible = ledger.visibleSequences
}

/** It is about to be booked as one that decodes. */
export function join(open: DecodeWindow, inFlight: InFlight): void {
  open.heldSequences += inFlight.offer.sequences
  open.heldVisible += visibleSequences(inFlight)
  open.tokens -= siblings(inFlight)
}

/** First tokens that come with its own, of the same step, and are told as progress. */
export function siblings(inFlight: InFlight): number {
  return Math.max(0, visibleSequences(inFlight) - 1)
}

/** So many tokens have come over all streams since they were counted last. */
export function count(open: DecodeWindow, ledger: ReplicaLedger, tokens: Tokens, nowMs: Ms): void {
  hold(open, ledger, nowMs)
  open.tokens += tokens
  open.countedAtMs = nowMs
  open.sequenceMs += open.uncountedSequenceMs
  open.uncountedSequenceMs = 0
  open.visibleMs += open.uncountedVisibleMs
  open.uncountedVisibleMs = 0
}

/** Time to read it. */
export function isFull({ tokens }: DecodeWindow, { visibleSequences }: ReplicaLedger): boolean {
  return tokens >= WINDOW_STEPS * Math.max(1, visibleSequences)
}

/** Its steps, how long they took and their batch on the mean; undefined where too little was seen. */
export function shownBy(
  open: DecodeWindow,
): { readonly steps: number; readonly elapsedMs: Ms; readonly sequences: number } | undefined {
  const elapsedMs = open.countedAtMs - open.startedAtMs
  const visible = elapsedMs > 0 ? open.visibleMs / elapsedMs : 0
  if (visible < 1 || open.tokens < MIN_STEPS * visible) return undefined
  return { steps: open.tokens / visible, elapsedMs, sequences: open.sequenceMs / elapsedMs }
}
