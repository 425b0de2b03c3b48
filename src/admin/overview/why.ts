/** Tells one decision in a sentence, and how it turned out in another, from the numbers in its records. */
import type { ShedReason } from '../../core/effects.ts'
import type { CandidateView, DecisionRecord, GateName, Settlement, Verdict } from '../../core/records.ts'
import { type Offer, ttftTargetMs } from '../../core/request.ts'
import { VERDICT_CAUSES, type VerdictCause } from '../../slo/judge.ts'
import { shownCount, shownMs } from '../words.ts'

/** A replica's name for people, from its id. */
export type NameOf = (replicaId: string) => string

/** Waiting for less than this is not worth a word, in ms. */
const WORTH_TELLING_MS = 1

/** Why it was sent there, held so long or refused. A request that left while it waited has only a settlement. */
export function whySentence(
  decision: DecisionRecord | undefined,
  settlement: Settlement | undefined,
  nameOf: NameOf,
): string {
  if (decision === undefined) {
    if (settlement?.outcome === 'cancelled')
      return `Its client left after ${shownMs(settlement.e2eMs)} of waiting.`
    return 'The decision is no longer held.'
  }
  const { verdict } = decision
  if (verdict.kind === 'admit') return admitted(decision, verdict.replicaId, nameOf)
  if (verdict.kind === 'wait') return `Held for ${shownMs(decision.waitedMs)} so far.`
  return `Refused: ${refusal(verdict.reason, decision, nameOf)}.${comeBack(verdict)}`
}

function comeBack({ reason, retryAfterMs }: Extract<Verdict, { readonly kind: 'shed' }>): string {
  if (reason === 'infeasible') return ' A retry can’t help.'
  return retryAfterMs === undefined || retryAfterMs < 1
    ? ''
    : ` Room is expected in ${shownMs(retryAfterMs)}.`
}

/** How it ended; undefined while it runs. */
export function endSentence(settlement: Settlement | undefined): string | undefined {
  if (settlement === undefined || settlement.outcome === 'shed' || settlement.outcome === 'cancelled')
    return undefined
  const { verdict, ttftMs, tpotMs, e2eMs } = settlement
  const spans = [
    ...(ttftMs === undefined ? [] : [`first token after ${shownMs(ttftMs)}`]),
    ...(tpotMs === undefined ? [] : [`then ${shownMs(tpotMs)} a token`]),
    `${shownMs(e2eMs)} in all`,
  ].join(', ')
  const cause: string = VERDICT_CAUSES[verdict.cause as VerdictCause] ?? ''
  const judged = { good: 'Kept its promise', bad: 'Missed its promise', excluded: 'Not counted' }[
    verdict.kind
  ]
  return `${judged}: ${spans}.${cause === '' ? '' : ` ${cause}`}`
}

/** In shadow mode: what enforcing would have done. Undefined in other modes. */
export function wouldHaveSentence(wouldHave: Verdict | undefined, nameOf: NameOf): string | undefined {
  if (wouldHave === undefined) return undefined
  if (wouldHave.kind === 'admit')
    return `Enforcing would have sent it to ${nameOf(wouldHave.replicaId)} at once.`
  if (wouldHave.kind === 'wait') return 'Enforcing would have held it.'
  return `Enforcing would have refused it (${wouldHave.reason}).`
}

function admitted(decision: DecisionRecord, replicaId: string, nameOf: NameOf): string {
  const { offer, attempt, waitedMs, trusted } = decision
  const chosen = decision.candidates.find((view) => view.replicaId === replicaId)
  const start =
    attempt === 2
      ? 'Tried again, after another replica failed it, on'
      : waitedMs < WORTH_TELLING_MS
        ? 'Sent at once to'
        : `Held ${shownMs(waitedMs)}, then sent to`
  const sent = `${start} ${nameOf(replicaId)}`
  if (chosen?.predictedTtftMs === undefined) return `${sent}; nothing predicts its first token yet.`
  const bound = chosen.boundTtftMs === undefined ? '' : ` (${shownMs(chosen.boundTtftMs)} with its margin)`
  const target = targetOf(offer)
  const promise = target === undefined ? '' : `; the promise is ${shownMs(target)}`
  const doubt = trusted ? '' : ', a prediction not trusted yet'
  return `${sent}: first token predicted after ${shownMs(chosen.predictedTtftMs)}${bound}${doubt}${promise}.`
}

function refusal(reason: ShedReason, decision: DecisionRecord, nameOf: NameOf): string {
  const { offer, waitedMs } = decision
  switch (reason) {
    case 'slo_unreachable':
      return unreachable(decision, nameOf)
    case 'infeasible':
      return `not even an idle replica could keep the promise for ${shownCount(offer.promptTokens)} prompt tokens`
    case 'waiting_full':
      return 'the waiting room was full'
    case 'wait_expired':
      return `it had waited ${shownMs(waitedMs)}, as long as ${offer.slo.name} may`
    case 'tenant_limit':
      return `its tenant ${offer.tenant} is at its own limit`
    case 'no_replica':
      return `no replica of ${offer.pool} takes work`
    default:
      return reason satisfies never
  }
}

function unreachable({ candidates, offer, waitedMs }: DecisionRecord, nameOf: NameOf): string {
  const target = targetOf(offer)
  const promise =
    target === undefined
      ? `what ${offer.slo.name} promises`
      : `the ${shownMs(target)} that ${offer.slo.name} promises`
  if (waitedMs >= (target ?? Number.POSITIVE_INFINITY))
    return `${shownMs(waitedMs)} of waiting had used up ${promise}`
  const [best] = [...candidates].sort((a, b) => boundOf(a) - boundOf(b))
  if (best !== undefined && target !== undefined && boundOf(best) > target) {
    const soonest = Number.isFinite(boundOf(best))
      ? `would have given its first token after ${shownMs(boundOf(best))}`
      : GATE_WORDS[best.gate]
    return `even the soonest replica, ${nameOf(best.replicaId)}, ${soonest}, past ${promise}`
  }
  return `behind those who come first, its first token would have missed ${promise}`
}

/** Why a replica was not taken. */
export const GATE_WORDS: Readonly<Record<GateName | 'ok', string>> = {
  ok: 'others came first',
  state: 'it takes no work now, or has failed this request already',
  slack: 'its prefill would have made running streams late',
  steady: 'its steps would have become too slow for what it promises',
  kv: 'its KV memory would have run out',
  depth: 'enough is queued there already',
  slots: 'its batch is full',
}

function boundOf({ boundTtftMs, predictedTtftMs }: CandidateView): number {
  return boundTtftMs ?? predictedTtftMs ?? Number.POSITIVE_INFINITY
}

/** What the first token was due within, as it was steered by; else what the whole answer was. */
function targetOf(offer: Offer): number | undefined {
  return offer.steerTtftMs ?? ttftTargetMs(offer.slo, offer.promptTokens) ?? offer.slo.e2eMs
}
