/** Makes the one Settlement of a request from what the gate knows and what the relay reported. */
import type { Draft } from './draft.ts'
import type { ShedReason } from './effects.ts'
import type { InFlight } from './ledger.ts'
import {
  type Judge,
  type JudgeFacts,
  RECORD_VERSION,
  type Settlement,
  type SettleReport,
  type WithdrawnOutcome,
} from './records.ts'
import type { Ms } from './units.ts'
import type { Waiter } from './waiting-room.ts'

/** The end of a request that held a permit. */
export function settleInFlight(inFlight: InFlight, report: SettleReport, judge: Judge): Settlement {
  const { offer } = inFlight
  const outputTokens = report.usage?.outputTokens ?? report.contentEvents
  const promptTokens = report.usage?.promptTokens ?? offer.promptTokens
  const ttftMs =
    offer.streamed && report.firstTokenAtMs !== undefined
      ? report.firstTokenAtMs - offer.receivedAtMs
      : undefined
  const facts: Draft<JudgeFacts> = {
    offer,
    outcome: report.outcome,
    e2eMs: report.endedAtMs - offer.receivedAtMs,
    promptTokens,
    outputTokens,
    slowReader: report.slowReader ?? false,
  }
  if (ttftMs !== undefined) facts.ttftMs = ttftMs
  const tpotMs = tpotOf(inFlight, report, outputTokens)
  if (tpotMs !== undefined) facts.tpotMs = tpotMs
  const made = settlement(facts, judge, {
    attempts: inFlight.attempt,
    queueMs: inFlight.dispatchedAtMs - offer.receivedAtMs,
    countedBy:
      report.usage?.outputTokens !== undefined ? 'usage' : report.contentEvents > 0 ? 'events' : 'none',
  })
  made.replicaId = inFlight.replicaId
  if (report.usage?.cachedTokens !== undefined) made.cachedTokens = report.usage.cachedTokens
  if (inFlight.predictedTtftMs !== undefined) made.predictedTtftMs = inFlight.predictedTtftMs
  if (report.engineError !== undefined) made.engineError = report.engineError
  if (report.oversizedFrames !== undefined) made.oversizedFrames = report.oversizedFrames
  return made
}

/** The end of a request that never got a permit, or gave it back and got no other. */
export function settleWaiter(
  waiter: Pick<Waiter, 'offer' | 'attempt'>,
  end: { readonly outcome: WithdrawnOutcome | 'shed' | 'upstream_failed'; readonly shedReason?: ShedReason },
  judge: Judge,
  nowMs: Ms,
): Settlement {
  const { offer } = waiter
  const facts: JudgeFacts = {
    offer,
    ...end,
    e2eMs: nowMs - offer.receivedAtMs,
    promptTokens: offer.promptTokens,
    outputTokens: 0,
    slowReader: false,
  }
  const attempts = end.outcome === 'upstream_failed' ? waiter.attempt : waiter.attempt - 1
  return settlement(facts, judge, { attempts, queueMs: nowMs - offer.receivedAtMs, countedBy: 'none' })
}

/** What every request has, and of the rest what was judged. */
function settlement(
  facts: JudgeFacts,
  judge: Judge,
  { attempts, queueMs, countedBy }: Pick<Settlement, 'attempts' | 'queueMs' | 'countedBy'>,
): Draft<Settlement> {
  const { offer, outcome, e2eMs, promptTokens, outputTokens } = facts
  const made: Draft<Settlement> = {
    version: RECORD_VERSION,
    requestId: offer.requestId,
    offer,
    outcome,
    attempts,
    queueMs,
    e2eMs,
    promptTokens,
    outputTokens,
    countedBy,
    verdict: judge(facts),
  }
  if (facts.shedReason !== undefined) made.shedReason = facts.shedReason
  if (facts.ttftMs !== undefined) made.ttftMs = facts.ttftMs
  if (facts.tpotMs !== undefined) made.tpotMs = facts.tpotMs
  return made
}

/** TPOT = (last − first) / (tokens per choice − 1); undefined for one token and for answers that did not stream. */
function tpotOf(inFlight: InFlight, report: SettleReport, outputTokens: number): Ms | undefined {
  const { firstTokenAtMs, lastTokenAtMs } = report
  const perChoice = outputTokens / inFlight.offer.sequences
  if (!inFlight.offer.streamed || firstTokenAtMs === undefined || lastTokenAtMs === undefined)
    return undefined
  return perChoice > 1 ? (lastTokenAtMs - firstTokenAtMs) / (perChoice - 1) : undefined
}
