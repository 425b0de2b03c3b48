/** One replica as a decision sees it now: what is queued there, how fast it is, what its streams can still bear. */
import type { ReplicaLedger } from '../core/ledger.ts'
import type { Ms, Tokens } from '../core/units.ts'
import type { EngineGroup } from '../estimate/engine-group.ts'
import { cautiousDecodeStepMs, decodeStepMs, prefillStallMs, type StepModel } from '../estimate/step-model.ts'
import { chunkTokens } from '../estimate/step-windows.ts'
import {
  type EngineLoad,
  isHeadOverdue,
  loadClass,
  loadOf,
  promptClass,
  queueMs,
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
  readonly nowMs: Ms
  /** By class of prompt, once asked for: what a raw TTFT there must be multiplied by to be the median. */
  readonly medianFactors: number[]
  /** Uncached tokens there that are not prefilled yet, as dead-reckoned. */
  readonly backlogTokens: Tokens
  readonly backlogMs: Ms
  /** It has a prompt that it does not begin: see `isHeadOverdue`. */
  readonly headOverdue: boolean
  readonly decodeStepMs: Ms
  /** Prefill stall that its running streams can bear beyond the backlog's own, in ms; Infinity with none. */
  readonly bearableStallMs: Ms
  /** Tightest TPOT target among its running streams, in ms; Infinity with none. */
  readonly tightestTpotMs: Ms
  /** Prefill that renews the batch, per running sequence and step, in ms: see `Residents`. */
  readonly renewalMs: Ms
  /** Sequences that it may run at once for us; Infinity when nobody knows. */
  readonly slots: number
}

/** Reads one replica; what its running streams allow may be `residentsMs` old. Costs O(streams there) when it is read. */
export function outlook(
  ledger: ReplicaLedger,
  learnt: Learnt,
  instances: number,
  nowMs: Ms,
  residentsMs: Ms = 0,
): Outlook {
  const group = learnt.groupOf(ledger)
  const model = group.modelOf(ledger.replicaId)
  const load = loadOf(model, ledger, nowMs)
  learnt.readGauges(ledger)
  const stepMs = decodeStepMs(model, ledger.inFlightSequences, ledger.contextTokens)
  const residents =
    residentsOf(ledger, learnt, nowMs, residentsMs) ?? readResidents(ledger, learnt, model, stepMs, nowMs)
  return {
    ledger,
    group,
    model,
    load,
    chunkTokens: load.chunkTokens,
    nowMs,
    medianFactors: [],
    backlogTokens: load.backlogTokens,
    backlogMs: queueMs(model, load),
    headOverdue: isHeadOverdue(ledger, nowMs),
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

function medianFactor({ medianFactors, group, load, nowMs }: Outlook, uncachedTokens: Tokens): number {
  const ofPrompt = promptClass(uncachedTokens)
  const known = medianFactors[ofPrompt]
  if (known !== undefined) return known
  const factor = group.ttftFactor(loadClass(load, ofPrompt), 'p50', nowMs)
  medianFactors[ofPrompt] = factor
  return factor
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
  readonly readAtMs: Ms
  readonly version: number
  readonly lastTokenAtMs: Ms
  readonly slackMs: Ms
  readonly tpotMs: Ms
  /**
   * In a steady batch each stream that ends is followed by one that must be prefilled, so that B streams of L tokens
   * bring B/L prefills to each step: what one stream adds to each step that way, in ms. Without it a batch grows until
   * decoding alone fills the TPOT target and no room is left for anybody's prefill (Little's law; decision notes, F3
   * STEADY).
   */
  readonly renewalMs: Ms
}

const residentsKept = keptBy<ReplicaLedger, Residents>()

function residentsOf(ledger: ReplicaLedger, learnt: Learnt, nowMs: Ms, keptMs: Ms): Residents | undefined {
  const kept = residentsKept(learnt).get(ledger)
  if (kept?.version !== ledger.version) return undefined
  return kept.lastTokenAtMs === ledger.lastTokenAtMs || nowMs - kept.readAtMs < keptMs ? kept : undefined
}

/**
 * The least slack among running streams: the time that stream j may lose and still meet TPOT_j over all its tokens,
 * slack_j = TPOT_j*g - elapsed + rem*(TPOT_j - step) (decision notes, F3). g is taken at its last progress. Only what
 * is still to come is planned with a margin; what is done is known. A stream is lost, and no longer vetoes, only when
 * it would be late without any margin. One pass for this and for what renews the batch: it is the costliest loop here.
 */
function readResidents(
  ledger: ReplicaLedger,
  learnt: Learnt,
  model: StepModel,
  stepMs: Ms,
  nowMs: Ms,
): Residents {
  let slackMs = Number.POSITIVE_INFINITY
  let tpotMs = Number.POSITIVE_INFINITY
  const nextStepMs = Math.max(
    stepMs,
    cautiousDecodeStepMs(model, ledger.inFlightSequences + 1, ledger.contextTokens),
  )
  const chunk = chunkTokens(ledger)
  let renewingMs = 0
  let tokens = 0
  for (const inFlight of ledger.decoding.values()) {
    const { permitId, offer, contentEvents, uncachedTokens, firstTokenAtMs, lastTokenAtMs } = inFlight
    const made = (contentEvents * learnt.tokensPerEvent(offer.pool)) / offer.sequences
    const left = learnt.restOf(permitId, offer, made, SLACK_LENGTH_QUANTILE)
    renewingMs += prefillStallMs(model, uncachedTokens, chunk)
    tokens += offer.sequences * (made + left)
    const target = offer.slo.tpotMs
    if (target === undefined || !offer.streamed || firstTokenAtMs === undefined) continue
    const elapsedMs = (lastTokenAtMs ?? firstTokenAtMs) - firstTokenAtMs
    const banked = target * made - elapsedMs
    if (banked + left * (target - stepMs) < -LOST_BY_MS) continue
    slackMs = Math.min(slackMs, Math.max(0, banked + left * (target * TPOT_USE_RATIO - nextStepMs)))
    tpotMs = Math.min(tpotMs, target)
  }
  const renewalMs = tokens > 0 ? renewingMs / tokens : 0
  const { version, lastTokenAtMs } = ledger
  const fresh = { readAtMs: nowMs, version, lastTokenAtMs, slackMs, tpotMs, renewalMs }
  residentsKept(learnt).set(ledger, fresh)
  return fresh
}
