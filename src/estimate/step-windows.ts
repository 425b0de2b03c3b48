/** Cuts what the ledger sees of one replica into the two kinds of observation that the step model learns from. */
import type { InFlight, ReplicaLedger } from '../core/ledger.ts'
import type { Ms, Tokens } from '../core/units.ts'
import {
  count,
  type DecodeWindow,
  hold,
  isFull,
  join,
  openDecode,
  shownBy,
  siblings,
} from './decode-window.ts'
import {
  HALF_STEP,
  joiningSteps,
  leavingMs,
  observeDecode,
  observePrefill,
  type StepModel,
  type StepResidual,
} from './step-model.ts'
import {
  addPrompt,
  forgetUnseen,
  noWork,
  type PrefillWork,
  takeUnseen,
  type UnseenPrompts,
  unseenPrompts,
  unseenReleased,
  unseenSent,
} from './unseen-prompts.ts'

/** A prefill interval is read after so many chunks' worth of tokens, or when the backlog is empty. */
const PREFILL_WINDOW_CHUNKS = 2
/** The token budget of a step that is assumed of an engine that tells none: vLLM's smallest default. */
export const UNTOLD_BUDGET_TOKENS: Tokens = 2048
/** First tokens closer together than this left the engine in one step, in ms. */
const SAME_STEP_MS: Ms = 1

interface PrefillWindow extends PrefillWork {
  startedAtMs: Ms
  /** The last first token in it, or undefined when there was none yet. */
  lastFirstTokenAtMs: Ms | undefined
  starts: number
  decodedTokens: Tokens
  sequencesAtStart: number
  visibleAtStart: number
  /** A request left before its first token, so the work in it is unknown. */
  spoilt: boolean
}

/** What is open of one replica. Plain values. */
export interface StepWindows {
  decode: DecodeWindow | undefined
  prefill: PrefillWindow | undefined
  /** The last first tokens, as many as there are engines for prompts alone: how long each of these has been free. */
  readonly lastFirstTokens: Ms[]
  readonly unseen: UnseenPrompts
}

export type WindowKind = 'decode' | 'prefill'

/** Whoever reads the windows of one replica: the model that learns, and what hears how far each window was off it. */
export interface WindowReader {
  readonly model: StepModel
  heard(kind: WindowKind, residual: StepResidual | undefined): void
}

export function stepWindows(): StepWindows {
  return { decode: undefined, prefill: undefined, lastFirstTokens: [], unseen: unseenPrompts() }
}

/** To be called after a dispatch was booked. */
export function windowsDispatched(
  windows: StepWindows,
  reader: WindowReader,
  ledger: ReplicaLedger,
  inFlight: InFlight,
  nowMs: Ms,
): void {
  if (reader.model.prefillEngines > 0) return
  if (ledger.prefilling.size > 1 && windows.prefill !== undefined) readPrefill(windows, reader, ledger, nowMs)
  else {
    readDecode(windows, reader, ledger)
    windows.decode = undefined
    windows.prefill = openPrefill(ledger, nowMs, 1)
    forgetUnseen(windows.unseen)
  }
  unseenSent(windows.unseen, inFlight)
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
  count(open, ledger, tokens, nowMs)
  if (!isFull(open, ledger)) return
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
  takeUnseen(windows.unseen, open, inFlight, chunkTokens(ledger))
  addPrompt(open, inFlight, chunkTokens(ledger))
  open.lastFirstTokenAtMs = nowMs
  if (ledger.prefilling.size > 1) {
    open.decodedTokens -= siblings(inFlight)
    return
  }
  closePrefill(windows, reader, ledger)
  windows.prefill = undefined
  windows.decode = openDecode(ledger, nowMs)
  join(windows.decode, inFlight)
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
  const { dispatchedAtMs } = inFlight
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
  addPrompt(open, inFlight, chunkTokens(ledger), free ? 1 : prefillEngines)
  open.lastFirstTokenAtMs = nowMs
  lastFirstTokens.push(nowMs)
  if (lastFirstTokens.length > prefillEngines) lastFirstTokens.shift()
  windows.decode ??= openDecode(ledger, nowMs)
  hold(windows.decode, ledger, nowMs)
  join(windows.decode, inFlight)
}

/** To be called after a permit was given back, its answer `completed` or not. */
export function windowsReleased(
  windows: StepWindows,
  ledger: ReplicaLedger,
  inFlight: InFlight,
  completed: boolean,
  nowMs: Ms,
): void {
  if (windows.decode !== undefined) hold(windows.decode, ledger, nowMs)
  const begun = inFlight.firstTokenAtMs !== undefined
  const known = inFlight.offer.streamed
    ? begun
    : unseenReleased(windows.unseen, inFlight, completed, chunkTokens(ledger))
  if (!begun && ledger.prefilling.size === 0) windows.prefill = undefined
  else if (!known && windows.prefill !== undefined) windows.prefill.spoilt = true
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
    ...noWork(),
    decodedTokens: 0,
    sequencesAtStart: ledger.decodingSequences,
    visibleAtStart: ledger.visibleSequences,
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
  const visible = (open.visibleAtStart + ledger.visibleSequences) / 2
  // Each running stream gets one token a step; with none to count by, a chunk is a step.
  // The step that ran when it began was half over on average.
  const counted = open.decodedTokens / visible - HALF_STEP * open.starts
  const shared = visible >= 1 ? Math.max(1, counted) : open.chunks
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

function readDecode(windows: StepWindows, reader: WindowReader, ledger: ReplicaLedger): void {
  const shown = windows.decode === undefined ? undefined : shownBy(windows.decode)
  if (shown === undefined) return
  const { steps, elapsedMs, sequences } = shown
  reader.heard('decode', observeDecode(reader.model, steps, elapsedMs, sequences, ledger.contextTokens))
}
