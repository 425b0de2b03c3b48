/** Cuts what the ledger sees of one replica into the two kinds of observation that the step model learns from. */
import { type InFlight, pairsOf, type ReplicaLedger } from '../core/ledger.ts'
import type { Ms, Tokens } from '../core/units.ts'
import {
  HALF_STEP,
  joiningSteps,
  leavingMs,
  observeDecode,
  observePrefill,
  type StepModel,
  type StepResidual,
} from './step-model.ts'

/** A decode window is read after so many steps, or when a prefill begins. */
const DECODE_WINDOW_STEPS = 8
const MIN_DECODE_STEPS = 2
/** A prefill interval is read after so many chunks' worth of tokens, or when the backlog is empty. */
const PREFILL_WINDOW_CHUNKS = 2
/** The token budget of a step that is assumed of an engine that tells none: vLLM's smallest default. */
export const UNTOLD_BUDGET_TOKENS: Tokens = 2048
/** First tokens closer together than this left the engine in one step, in ms. */
const SAME_STEP_MS: Ms = 1

/** Streams may come and go in it: their number is integrated over time. */
interface DecodeWindow {
  readonly startedAtMs: Ms
  tokens: Tokens
  /** When tokens were last counted; what came later is not in `tokens` yet. */
  countedAtMs: Ms
  /** Sequences times ms up to `countedAtMs`, and since then up to `heldAtMs`. */
  sequenceMs: number
  uncountedSequenceMs: number
  heldAtMs: Ms
  heldSequences: number
}

interface PrefillWindow {
  startedAtMs: Ms
  /** The last first token in it, or undefined when there was none yet. */
  lastFirstTokenAtMs: Ms | undefined
  starts: number
  prefillTokens: Tokens
  pairs: number
  chunks: number
  decodedTokens: Tokens
  sequencesAtStart: number
  /** A request left before its first token, so the work in it is unknown. */
  spoilt: boolean
}

/** What is open of one replica. Plain values. */
export interface StepWindows {
  decode: DecodeWindow | undefined
  prefill: PrefillWindow | undefined
  /** The last first tokens, as many as there are engines for prompts alone: how long each of these has been free. */
  readonly lastFirstTokens: Ms[]
}

export type WindowKind = 'decode' | 'prefill'

/** Whoever reads the windows of one replica: the model that learns, and what hears how far each window was off it. */
export interface WindowReader {
  readonly model: StepModel
  heard(kind: WindowKind, residual: StepResidual | undefined): void
}

export function stepWindows(): StepWindows {
  return { decode: undefined, prefill: undefined, lastFirstTokens: [] }
}

/** To be called after a dispatch was booked. */
export function windowsDispatched(
  windows: StepWindows,
  reader: WindowReader,
  ledger: ReplicaLedger,
  nowMs: Ms,
): void {
  if (reader.model.prefillEngines > 0) return
  if (ledger.prefilling.size > 1 && windows.prefill !== undefined) {
    readPrefill(windows, reader, ledger, nowMs)
    return
  }
  readDecode(windows, reader, ledger)
  windows.decode = undefined
  windows.prefill = openPrefill(ledger, nowMs, 1)
}

/** To be called after progress was booked: `tokens` decoded over all streams since the last call. */
export function windowsProgress(
  windows: StepWindows,
  reader: WindowReader,
  ledger: ReplicaLedger,
  tokens: Tokens,
  nowMs: Ms,
): void {
  if (ledger.prefilling.size > 0 && reader.model.prefillEngines === 0) {
    if (windows.prefill !== undefined) windows.prefill.decodedTokens += tokens
    return
  }
  const open = windows.decode
  if (open === undefined) {
    windows.decode = openDecode(ledger, nowMs)
    return
  }
  hold(open, ledger, nowMs)
  open.tokens += tokens
  open.countedAtMs = nowMs
  open.sequenceMs += open.uncountedSequenceMs
  open.uncountedSequenceMs = 0
  if (open.tokens < DECODE_WINDOW_STEPS * Math.max(1, ledger.decodingSequences)) return
  readDecode(windows, reader, ledger)
  windows.decode = openDecode(ledger, nowMs)
}

/** To be called before a first token is booked. */
export function windowsFirstToken(
  windows: StepWindows,
  reader: WindowReader,
  ledger: ReplicaLedger,
  inFlight: InFlight,
  nowMs: Ms,
): void {
  if (reader.model.prefillEngines > 0) {
    apartFirstToken(windows, reader, ledger, inFlight, nowMs)
    return
  }
  readPrefill(windows, reader, ledger, nowMs)
  windows.prefill ??= openPrefill(ledger, nowMs, 0)
  const open = windows.prefill
  open.prefillTokens += inFlight.uncachedTokens
  open.pairs += pairsOf(inFlight)
  open.chunks += Math.max(1, Math.ceil(inFlight.uncachedTokens / chunkTokens(ledger)))
  open.lastFirstTokenAtMs = nowMs
  if (ledger.prefilling.size > 1) return
  closePrefill(windows, reader, ledger)
  windows.prefill = undefined
  windows.decode = openDecode(ledger, nowMs)
  windows.decode.heldSequences += inFlight.offer.sequences
}

/**
 * Where prompts have engines of their own decode windows go on, and what a prompt took is told by whether it found one
 * free: if so, from its dispatch; else from when the prompt before it was done, which is as long before that one's first
 * token as before its own.
 */
function apartFirstToken(
  windows: StepWindows,
  reader: WindowReader,
  ledger: ReplicaLedger,
  inFlight: InFlight,
  nowMs: Ms,
): void {
  const { model } = reader
  const { prefillEngines } = model
  const { dispatchedAtMs, uncachedTokens, offer } = inFlight
  const { lastFirstTokens } = windows
  const before = lastFirstTokens[lastFirstTokens.length - prefillEngines] ?? Number.NEGATIVE_INFINITY
  const free = dispatchedAtMs >= before - leavingMs(model, ledger.decodingSequences, ledger.contextTokens)
  if (free) {
    closePrefill(windows, reader, ledger)
    windows.prefill = openPrefill(ledger, dispatchedAtMs, 1)
  } else {
    readPrefill(windows, reader, ledger, nowMs)
    windows.prefill ??= openPrefill(ledger, ledger.lastFirstTokenAtMs, 0)
  }
  const open = windows.prefill
  // Those that queue are computed side by side.
  const share = free ? 1 : prefillEngines
  open.prefillTokens += uncachedTokens / share
  open.pairs += pairsOf(inFlight) / share
  open.chunks += Math.max(1, Math.ceil(uncachedTokens / chunkTokens(ledger))) / share
  open.lastFirstTokenAtMs = nowMs
  lastFirstTokens.push(nowMs)
  if (lastFirstTokens.length > prefillEngines) lastFirstTokens.shift()
  windows.decode ??= openDecode(ledger, nowMs)
  hold(windows.decode, ledger, nowMs)
  windows.decode.heldSequences += offer.sequences
}

/** To be called after a permit was given back; `spoilt` when it had not had its first token. */
export function windowsReleased(
  windows: StepWindows,
  ledger: ReplicaLedger,
  spoilt: boolean,
  nowMs: Ms,
): void {
  if (windows.decode !== undefined) hold(windows.decode, ledger, nowMs)
  if (!spoilt) return
  if (ledger.prefilling.size === 0) windows.prefill = undefined
  else if (windows.prefill !== undefined) windows.prefill.spoilt = true
}

/** Prompt tokens of one full chunk there: the token budget less what decodes. */
export function chunkTokens(ledger: ReplicaLedger): Tokens {
  const { maxNumBatchedTokens: budget = UNTOLD_BUDGET_TOKENS, prefillEngines } = ledger.report.limits
  if (prefillEngines !== undefined) return budget
  return Math.max(16, budget - ledger.decodingSequences)
}

function openPrefill(ledger: ReplicaLedger, nowMs: Ms, starts: number): PrefillWindow {
  return {
    startedAtMs: nowMs,
    lastFirstTokenAtMs: undefined,
    starts,
    prefillTokens: 0,
    pairs: 0,
    chunks: 0,
    decodedTokens: 0,
    sequencesAtStart: ledger.decodingSequences,
    spoilt: false,
  }
}

/** Reads the open interval once a later step has begun and enough has been prefilled in it. */
function readPrefill(windows: StepWindows, reader: WindowReader, ledger: ReplicaLedger, nowMs: Ms): void {
  const open = windows.prefill
  if (open?.lastFirstTokenAtMs === undefined) return
  const enough = open.prefillTokens >= PREFILL_WINDOW_CHUNKS * chunkTokens(ledger)
  if (nowMs - open.lastFirstTokenAtMs <= SAME_STEP_MS || !(enough || open.spoilt)) return
  const { lastFirstTokenAtMs } = open
  closePrefill(windows, reader, ledger)
  windows.prefill = openPrefill(ledger, lastFirstTokenAtMs, 0)
}

function closePrefill(windows: StepWindows, reader: WindowReader, ledger: ReplicaLedger): void {
  const open = windows.prefill
  if (open?.lastFirstTokenAtMs === undefined || open.spoilt) return
  const sequences = (open.sequencesAtStart + ledger.decodingSequences) / 2
  // Each running stream gets one token a step; with none to count by, a chunk is a step.
  // The step that ran when it began was half over on average.
  const counted = open.decodedTokens / sequences - HALF_STEP * open.starts
  const shared = sequences >= 1 ? Math.max(1, counted) : open.chunks
  const { prefillEngines } = reader.model
  const steps = prefillEngines > 0 ? open.starts * joiningSteps(reader.model, sequences) : shared
  const residual = observePrefill(reader.model, {
    elapsedMs: open.lastFirstTokenAtMs - open.startedAtMs,
    starts: open.starts,
    prefillTokens: open.prefillTokens,
    pairs: open.pairs,
    chunks: open.chunks,
    steps,
    sequences,
    contextTokens: ledger.contextTokens,
  })
  reader.heard('prefill', residual)
}

function openDecode(ledger: ReplicaLedger, nowMs: Ms): DecodeWindow {
  return {
    startedAtMs: nowMs,
    tokens: 0,
    countedAtMs: nowMs,
    sequenceMs: 0,
    uncountedSequenceMs: 0,
    heldAtMs: nowMs,
    heldSequences: ledger.decodingSequences,
  }
}

/** Integrates the sequences up to now and takes their new number. */
function hold(open: DecodeWindow, ledger: ReplicaLedger, nowMs: Ms): void {
  open.uncountedSequenceMs += open.heldSequences * (nowMs - open.heldAtMs)
  open.heldAtMs = nowMs
  open.heldSequences = ledger.decodingSequences
}

function readDecode(windows: StepWindows, reader: WindowReader, ledger: ReplicaLedger): void {
  const open = windows.decode
  if (open === undefined) return
  const elapsedMs = open.countedAtMs - open.startedAtMs
  const sequences = elapsedMs > 0 ? open.sequenceMs / elapsedMs : 0
  if (sequences < 1 || open.tokens < MIN_DECODE_STEPS * sequences) return
  const steps = open.tokens / sequences
  reader.heard('decode', observeDecode(reader.model, steps, elapsedMs, sequences, ledger.contextTokens))
}
