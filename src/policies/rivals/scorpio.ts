/** A guard in the manner of SCORPIO: least deadline first, refused when its predicted TTFT is late, batch by TPOT. */
import { offerPairs } from '../../core/attention.ts'
import type { ReplicaLedger } from '../../core/ledger.ts'
import { type ReplicaId, ttftTargetMs } from '../../core/request.ts'
import type { GateState, Plan, Scheduler } from '../../core/scheduler.ts'
import type { Ms, Ratio, Tokens } from '../../core/units.ts'
import type { Waiter } from '../../core/waiting-room.ts'
import { decodeStepMs, type StepPrior } from '../../estimate/step-model.ts'
import { leastTrusted } from '../../estimate/trust.ts'
import { Learnt } from '../learnt.ts'
import { noReplica } from '../no-replica.ts'
import { engineTtftMs, isIdle, type Outlook, outlook } from '../outlook.ts'
import { eligible, passive, plainView } from '../plain/passive.ts'

/**
 * After SCORPIO (arXiv 2505.23022): both guards, with our estimator, so that policies are compared and not predictors.
 * Its virtual batch size is the batch size here: outside the engine no request can sit out a step.
 */
export interface ScorpioOptions {
  readonly priors?: Readonly<Record<string, StepPrior>>
  /** Prompt tokens that are pushed into an engine ahead of time. */
  readonly depthTokens?: Tokens
  /** Part of the tightest TPOT target that a predicted decode step may take. */
  readonly tpotRatio?: Ratio
}

/** Where work without a deadline stands in line, in ms. */
const NO_DEADLINE_MS: Ms = 3_600_000
/** Time alone moves predictions, so waiting work is looked at again after this, in ms. */
const LOOK_AGAIN_MS: Ms = 20

export function createScorpio(options: ScorpioOptions = {}): Scheduler {
  const learnt = new Learnt(options.priors ?? {})
  const groups = new Set<string>()
  return {
    ...passive('scorpio', (state, nowMs) => plan(state, learnt, options, nowMs)),
    trust: () => leastTrusted([...groups].map((groupId) => learnt.trust(groupId))),
    dispatched(inFlight, ledger, nowMs) {
      groups.add(ledger.report.groupId)
      learnt.dispatched(inFlight, ledger, nowMs)
    },
    progress: (ledger, contentEvents, nowMs) => learnt.progress(ledger, contentEvents, nowMs),
    firstToken: (inFlight, ledger, nowMs) => learnt.firstToken(inFlight, ledger, nowMs),
    settled: (inFlight, ledger, report, _verdict, nowMs) => learnt.released(inFlight, ledger, report, nowMs),
    bounced: (inFlight, ledger, _cause, nowMs) => learnt.released(inFlight, ledger, undefined, nowMs),
    replicaReset: (replicaId) => learnt.reset(replicaId),
    snapshot: () => learnt.snapshot(),
  }
}

interface Desk {
  readonly view: Outlook
  /** Predicted prefill of what waits for this replica ahead of the request looked at, in ms. */
  aheadMs: Ms
}

function plan(state: GateState, learnt: Learnt, options: ScorpioOptions, nowMs: Ms): Plan {
  const desks = new Map<ReplicaId, Desk>()
  const deskOf = (ledger: ReplicaLedger): Desk => {
    const known = desks.get(ledger.replicaId)
    if (known !== undefined) return known
    const desk = { view: outlook(ledger, learnt, state.instances, nowMs), aheadMs: 0 }
    desks.set(ledger.replicaId, desk)
    return desk
  }
  for (const waiter of [...state.waiting].sort((a, b) => deadlineAtMs(a) - deadlineAtMs(b))) {
    const { requestId } = waiter.offer
    const ledgers = eligible(waiter, state)
    if (ledgers.length === 0) return { intents: [noReplica(waiter)] }
    const { desk, ownMs, tokens } = soonest(ledgers.map(deskOf), waiter, learnt)
    const { ledger } = desk.view
    const firstTokenAtMs = nowMs + desk.aheadMs + ownMs
    if (firstTokenAtMs > deadlineAtMs(waiter) && learnt.trust(ledger.report.groupId, nowMs) !== 'fallback') {
      const retryAfterMs = Math.max(0, firstTokenAtMs - deadlineAtMs(waiter))
      return {
        intents: [{ kind: 'shed', requestId, reason: 'slo_unreachable', retryAfterMs, candidates: [] }],
      }
    }
    if (desk.aheadMs === 0 && hasRoom(desk.view, waiter, tokens, options)) {
      const candidates = [{ ...plainView(waiter, ledger), uncachedTokens: tokens }]
      return { intents: [{ kind: 'admit', requestId, replicaId: ledger.replicaId, candidates }] }
    }
    desk.aheadMs += ownMs - desk.view.backlogMs
  }
  return { intents: [], wakeAtMs: nowMs + LOOK_AGAIN_MS }
}

/** Where its first token would come soonest, with its own engine time and uncached tokens there. */
function soonest(desks: readonly Desk[], waiter: Waiter, learnt: Learnt) {
  const { promptTokens } = waiter.offer
  const cached = learnt.prefixes.cachedTokens(waiter.offer)
  const choices = desks.map((desk) => {
    const tokens = Math.max(1, promptTokens - (cached.get(desk.view.ledger.replicaId) ?? 0))
    return { desk, tokens, ownMs: engineTtftMs(desk.view, tokens, offerPairs(waiter.offer, tokens)) }
  })
  return choices.reduce((best, one) =>
    one.desk.aheadMs + one.ownMs < best.desk.aheadMs + best.ownMs ? one : best,
  )
}

function hasRoom(view: Outlook, { offer }: Waiter, tokens: Tokens, options: ScorpioOptions): boolean {
  const { depthTokens = 2048, tpotRatio = 0.8 } = options
  if (isIdle(view)) return true
  const { ledger, model, slots, backlogTokens } = view
  const batch = ledger.inFlightSequences + offer.sequences
  if (batch > slots || (ledger.prefilling.size > 0 && backlogTokens + tokens > depthTokens)) return false
  const boundMs = Math.min(view.tightestTpotMs, offer.slo.tpotMs ?? Number.POSITIVE_INFINITY)
  return decodeStepMs(model, batch, ledger.contextTokens + offer.promptTokens) <= boundMs * tpotRatio
}

function deadlineAtMs({ offer }: Waiter): Ms {
  const { slo, receivedAtMs, promptTokens } = offer
  return receivedAtMs + (ttftTargetMs(slo, promptTokens) ?? slo.e2eMs ?? NO_DEADLINE_MS)
}
