/** One replica as a decision sees it now: what is queued there, how fast it is, what its streams can still bear. */
import type { InFlight, ReplicaLedger } from '../core/ledger.ts'
import type { Ms, Tokens } from '../core/units.ts'
import type { EngineGroup } from '../estimate/engine-group.ts'
import { cautiousDecodeStepMs, decodeStepMs, prefillStallMs, type StepModel } from '../estimate/step-model.ts'
import { chunkTokens } from '../estimate/step-windows.ts'
import {
  type EngineLoad,
  loadClass,
  loadOf,
  PROMPT_CLASSES,
  prefillTimeMs,
  promptClass,
  rawTtftMs,
} from '../estimate/ttft.ts'
import { keptBy } from './kept.ts'
import type { Learnt } from './learnt.ts'

/** Part of each TPOT target that plans may use up; the rest covers what the model does not see. */
export const TPOT_USE_RATIO = 0.95
/**
 * Quantile of a stream's remaining length in SLACK: a stream that ends sooner than thought has no time left to catch
 * up. A stall touches the whole batch, so it must be bearable for ninety-nine in a hundred.
 */
const SLACK_LENGTH_QUANTILE = 0.01
/** Streams that are late by more than this are lost and no longer veto, in ms. */
const LOST_BY_MS: Ms = 20

export interface Outlook {
  readonly ledger: ReplicaLedger
  readonly group: EngineGroup
  readonly model: StepModel
  readonly load: EngineLoad
  readonly chunkTokens: Tokens
  /** By class of prompt: what a raw TTFT there must be multiplied by to be the median. */
  readonly medianFactors: readonly number[]
  /** Uncached tokens there that are not prefilled yet, as dead-reckoned. */
  readonly backlogTokens: Tokens
  readonly backlogMs: Ms
  readonly decodeStepMs: Ms
  /** Prefill stall that its running streams can bear beyond the backlog's own, in ms; Infinity with none. */
  readonly bearableStallMs: Ms
  /** Tightest TPOT target among its running streams, in ms; Infinity with none. */
  readonly tightestTpotMs: Ms
  /** Prefill that renews the batch, per running sequence and step, in ms: see `renewalMs`. */
  readonly renewalMs: Ms
  /** Sequences that it may run at once for us; Infinity when nobody knows. */
  readonly slots: number
}

/** Reads one replica. Costs O(streams there). */
export function outlook(ledger: ReplicaLedger, learnt: Learnt, instances: number, nowMs: Ms): Outlook {
  const group = learnt.group(ledger.report.groupId)
  const model = group.modelOf(ledger.replicaId)
  const load = loadOf(model, ledger, nowMs)
  learnt.readGauges(ledger)
  const stepMs = decodeStepMs(model, ledger.inFlightSequences, ledger.contextTokens)
  const residents = residentsOf(ledger, learnt, model, stepMs)
  return {
    ledger,
    group,
    model,
    load,
    chunkTokens: load.chunkTokens,
    medianFactors: Array.from({ length: PROMPT_CLASSES }, (_, ofPrompt) =>
      group.ttftFactor(loadClass(load, ofPrompt), 'p50', nowMs),
    ),
    backlogTokens: load.backlogTokens,
    backlogMs: prefillTimeMs(model, load, load.backlogTokens),
    decodeStepMs: stepMs,
    bearableStallMs: residents.slackMs - prefillStallMs(model, load.backlogTokens, load.chunkTokens),
    tightestTpotMs: residents.tpotMs,
    renewalMs: residents.renewalMs,
    slots: learnt.slots(ledger) / instances,
  }
}

/** Engine's own part of TTFT if `uncachedTokens` were sent there now: median, in ms. */
export function engineTtftMs(view: Outlook, uncachedTokens: Tokens): Ms {
  return rawTtftMs(view.model, view.load, uncachedTokens) * medianFactor(view, uncachedTokens)
}

/** The same so that four in five come sooner, in ms. */
export function boundTtftMs(view: Outlook, uncachedTokens: Tokens, nowMs: Ms): Ms {
  const ofLoad = loadClass(view.load, promptClass(uncachedTokens))
  return rawTtftMs(view.model, view.load, uncachedTokens) * view.group.ttftFactor(ofLoad, 'p80', nowMs)
}

/** What plans stretch raw times by: never less than the model says, and a bit more than the median. */
export function riskFactor(view: Outlook, uncachedTokens: Tokens): number {
  return Math.max(1, medianFactor(view, uncachedTokens) * 1.05)
}

function medianFactor({ medianFactors }: Outlook, uncachedTokens: Tokens): number {
  return medianFactors[promptClass(uncachedTokens)] ?? 1
}

/** What the request's prefill adds to the steps of those who stream there, in ms. */
export function stallMs(view: Outlook, uncachedTokens: Tokens): Ms {
  return prefillStallMs(view.model, uncachedTokens, view.chunkTokens)
}

/** True when nothing of ours is in flight there. */
export function isIdle(view: Outlook): boolean {
  return view.ledger.inFlightRequests === 0
}

/** What the running streams of a replica allow, kept until a permit or a token of it moves. */
interface Residents {
  readonly version: number
  readonly lastTokenAtMs: Ms
  readonly slackMs: Ms
  readonly tpotMs: Ms
  readonly renewalMs: Ms
}

/** A stream's remaining length, kept for some tokens. */
interface Rest {
  readonly madeTokens: Tokens
  readonly leftTokens: Tokens
}

const REST_KEPT_TOKENS = 16
const residentsKept = keptBy<ReplicaLedger, Residents>()
const restKept = keptBy<InFlight, Rest>()

function residentsOf(ledger: ReplicaLedger, learnt: Learnt, model: StepModel, stepMs: Ms): Residents {
  const kept = residentsKept(learnt).get(ledger)
  if (kept?.version === ledger.version && kept.lastTokenAtMs === ledger.lastTokenAtMs) return kept
  const { version, lastTokenAtMs } = ledger
  const fresh = {
    version,
    lastTokenAtMs,
    renewalMs: renewalMs(ledger, learnt, model),
    ...bearable(ledger, learnt, model, stepMs),
  }
  residentsKept(learnt).set(ledger, fresh)
  return fresh
}

/** Tokens that each sequence of a running stream still makes, at the quantile of SLACK. */
function restOf(inFlight: InFlight, madeTokens: Tokens, learnt: Learnt): Tokens {
  const kept = restKept(learnt).get(inFlight)
  if (kept !== undefined && madeTokens - kept.madeTokens < REST_KEPT_TOKENS) {
    return Math.max(1, kept.leftTokens - (madeTokens - kept.madeTokens))
  }
  const leftTokens = learnt.remaining(inFlight.offer, madeTokens, SLACK_LENGTH_QUANTILE)
  restKept(learnt).set(inFlight, { madeTokens, leftTokens })
  return leftTokens
}

/**
 * In a steady batch each stream that ends is followed by one that must be prefilled, so that B streams of L tokens bring
 * B/L prefills to each step: what one stream adds to each step that way, in ms. Without it a batch grows until decoding
 * alone fills the TPOT target and no room is left for anybody's prefill (Little's law; decision notes, F3 STEADY).
 */
function renewalMs(ledger: ReplicaLedger, learnt: Learnt, model: StepModel): Ms {
  const chunk = chunkTokens(ledger)
  let stallMs = 0
  let tokens = 0
  for (const inFlight of ledger.decoding.values()) {
    const { offer, contentEvents, uncachedTokens } = inFlight
    const made = (contentEvents * learnt.tokensPerEvent(offer.pool)) / offer.sequences
    stallMs += prefillStallMs(model, uncachedTokens, chunk)
    tokens += offer.sequences * (made + restOf(inFlight, made, learnt))
  }
  return tokens > 0 ? stallMs / tokens : 0
}

/**
 * The least slack among running streams: the time that stream j may lose and still meet TPOT_j over all its tokens,
 * slack_j = TPOT_j*g - elapsed + rem*(TPOT_j - step) (decision notes, F3). g is taken at its last progress. Only what
 * is still to come is planned with a margin; what is done is known. A stream is lost, and no longer vetoes, only when
 * it would be late without any margin.
 */
function bearable(
  ledger: ReplicaLedger,
  learnt: Learnt,
  model: StepModel,
  stepMs: Ms,
): { slackMs: Ms; tpotMs: Ms } {
  let slackMs = Number.POSITIVE_INFINITY
  let tpotMs = Number.POSITIVE_INFINITY
  const nextStepMs = Math.max(
    stepMs,
    cautiousDecodeStepMs(model, ledger.inFlightSequences + 1, ledger.contextTokens),
  )
  for (const inFlight of ledger.decoding.values()) {
    const { offer, contentEvents, firstTokenAtMs, lastTokenAtMs } = inFlight
    const target = offer.slo.tpotMs
    if (target === undefined || !offer.streamed || firstTokenAtMs === undefined) continue
    const made = (contentEvents * learnt.tokensPerEvent(offer.pool)) / offer.sequences
    const left = restOf(inFlight, made, learnt)
    const elapsedMs = (lastTokenAtMs ?? firstTokenAtMs) - firstTokenAtMs
    const banked = target * made - elapsedMs
    if (banked + left * (target - stepMs) < -LOST_BY_MS) continue
    slackMs = Math.min(slackMs, Math.max(0, banked + left * (target * TPOT_USE_RATIO - nextStepMs)))
    tpotMs = Math.min(tpotMs, target)
  }
  return { slackMs, tpotMs }
}
