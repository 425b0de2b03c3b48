/** Makes the one Settlement of a request from what the gate knows and what the relay reported. */
import type { ShedReason } from './effects.ts'
import type { InFlight } from './ledger.ts'
import { type Judge, type JudgeFacts, RECORD_VERSION, type Settlement, type SettleReport } from './records.ts'
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
  const facts: JudgeFacts = {
    offer,
    outcome: report.outcome,
    e2eMs: report.endedAtMs - offer.receivedAtMs,
    ...(ttftMs === undefined ? {} : { ttftMs }),
    ...optionalTpot(inFlight, report, outputTokens),
    promptTokens,
    outputTokens,
    slowReader: report.slowReader ?? false,
  }
  return settlement(facts, judge, {
    replicaId: inFlight.replicaId,
    attempts: inFlight.attempt,
    queueMs: inFlight.dispatchedAtMs - offer.receivedAtMs,
    countedBy:
      report.usage?.outputTokens !== undefined ? 'usage' : report.contentEvents > 0 ? 'events' : 'none',
    ...(report.usage?.cachedTokens === undefined ? {} : { cachedTokens: report.usage.cachedTokens }),
    ...(inFlight.predictedTtftMs === undefined ? {} : { predictedTtftMs: inFlight.predictedTtftMs }),
    ...(report.engineError === undefined ? {} : { engineError: report.engineError }),
    ...(report.oversizedFrames === undefined ? {} : { oversizedFrames: report.oversizedFrames }),
  })
}

/** The end of a request that never got a permit, or gave it back and got no other. */
export function settleWaiter(
  waiter: Pick<Waiter, 'offer' | 'attempt'>,
  end: { readonly outcome: 'shed' | 'cancelled' | 'upstream_failed'; readonly shedReason?: ShedReason },
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

type Rest = Pick<Settlement, 'attempts' | 'queueMs' | 'countedBy'> &
  Partial<
    Pick<Settlement, 'replicaId' | 'cachedTokens' | 'predictedTtftMs' | 'engineError' | 'oversizedFrames'>
  >

function settlement(facts: JudgeFacts, judge: Judge, rest: Rest): Settlement {
  const { slowReader: _, ...kept } = facts
  return {
    version: RECORD_VERSION,
    requestId: facts.offer.requestId,
    ...kept,
    ...rest,
    verdict: judge(facts),
  }
}

/** TPOT = (last − first) / (tokens per choice − 1); absent for one token and for answers that did not stream. */
function optionalTpot(inFlight: InFlight, report: SettleReport, outputTokens: number): { tpotMs?: Ms } {
  const { firstTokenAtMs, lastTokenAtMs } = report
  const perChoice = outputTokens / inFlight.offer.sequences
  if (!inFlight.offer.streamed || firstTokenAtMs === undefined || lastTokenAtMs === undefined) return {}
  return perChoice > 1 ? { tpotMs: (lastTokenAtMs - firstTokenAtMs) / (perChoice - 1) } : {}
}
