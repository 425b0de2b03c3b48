/** Writes one request's story as a short timeline, with the numbers that its decision saw. */
import { endSentence, GATE_WORDS, whySentence, wouldHaveSentence } from '../admin/overview/why.ts'
import { counted, NOTHING, shownCount, shownMs, shownObjective, shownPercent } from '../admin/words.ts'
import type { CandidateView, DecisionRecord, Settlement } from '../core/records.ts'
import { hasTargets, type Offer, type SloClass, ttftTargetMs } from '../core/request.ts'
import type { Ms } from '../core/units.ts'
import type { RingEntry } from '../telemetry/decision-ring.ts'
import { type Column, harmless, type Painter, tableLines } from './text-table.ts'

const WIDTH = 140
const asNamed = (replicaId: string) => replicaId

/** The story; instants count from the request's last body byte. */
export function storyText({ requestId, decision, settlement }: RingEntry, paint: Painter): string {
  const offer = decision?.offer ?? settlement?.offer
  if (offer === undefined) return `nothing is known of ${harmless(requestId)}\n`
  const lines = [
    `${paint.bold(harmless(requestId))}  ${offer.slo.name} on ${offer.pool}, tenant ${harmless(offer.tenant)}, product ${offer.product}`,
    `promised    ${promiseText(offer)}`,
    '',
    moment(0, 'received', receivedText(offer, settlement), paint),
    ...decided(decision, settlement, offer, paint),
    ...ended(settlement, paint),
  ]
  if (decision !== undefined && decision.candidates.length > 0) {
    const rows = tableLines(CANDIDATE_COLUMNS, decision.candidates, WIDTH, paint)
    lines.push('', 'What it saw of each replica', ...rows)
  }
  if (decision !== undefined)
    lines.push('', paint.dim(`decided under configuration ${decision.configDigest}`))
  return `${lines.join('\n')}\n`
}

function moment(atMs: Ms, what: string, text: string, paint: Painter): string {
  return `${shownMs(Math.max(0, atMs)).padStart(9)}  ${paint.bold(what.padEnd(12))}${harmless(text)}`
}

function decided(
  decision: DecisionRecord | undefined,
  settlement: Settlement | undefined,
  offer: Offer,
  paint: Painter,
): readonly string[] {
  const why = whySentence(decision, settlement, asNamed)
  if (decision === undefined) return [moment(settlement?.e2eMs ?? 0, 'undecided', why, paint)]
  const wouldHave = wouldHaveSentence(decision.wouldHave, asNamed)
  return [
    moment(decision.atMs - offer.receivedAtMs, decision.attempt === 2 ? 'rerouted' : 'decided', why, paint),
    ...(wouldHave === undefined ? [] : [`${' '.repeat(23)}${wouldHave}`]),
  ]
}

function ended(settlement: Settlement | undefined, paint: Painter): readonly string[] {
  if (settlement === undefined) return [`${' '.repeat(11)}${paint.bold('runs')}`]
  const { ttftMs, predictedTtftMs, e2eMs, outcome, outputTokens, verdict } = settlement
  const first =
    ttftMs === undefined
      ? []
      : [moment(ttftMs, 'first token', predictionText(ttftMs, predictedTtftMs), paint)]
  const end = endSentence(settlement)
  const text =
    end === undefined
      ? `${outcome}, ${verdict.kind}`
      : `${end} ${counted(outputTokens, 'token')} out, ${outcome}.`
  return [...first, moment(e2eMs, 'ended', text, paint)]
}

function predictionText(ttftMs: Ms, predictedTtftMs: Ms | undefined): string {
  if (predictedTtftMs === undefined) return 'nothing had predicted it'
  const offMs = ttftMs - predictedTtftMs
  return `predicted after ${shownMs(predictedTtftMs)}: it came ${shownMs(Math.abs(offMs))} ${offMs < 0 ? 'sooner' : 'later'}`
}

function receivedText(offer: Offer, settlement: Settlement | undefined): string {
  const exact = settlement?.promptTokens ?? offer.promptTokens
  const estimate = exact === offer.promptTokens ? '' : ` (estimated ${shownCount(offer.promptTokens)})`
  const most = offer.maxOutputTokens === undefined ? '' : `, at most ${shownCount(offer.maxOutputTokens)} out`
  const retry = offer.retryCount === 0 ? '' : `, the client’s retry ${offer.retryCount}`
  const copies = offer.sequences === 1 ? '' : `, ${offer.sequences} sequences`
  return `by route ${offer.route}: ${counted(exact, 'prompt token')}${estimate}${most}${copies}${offer.streamed ? ', streamed' : ''}${retry}`
}

function promiseText(offer: Offer): string {
  const { slo } = offer
  if (!hasTargets(slo)) return `nothing; waits up to ${shownMs(slo.maxWaitMs)} for room`
  const ttftMs = ttftTargetMs(slo, offer.promptTokens)
  const parts = [
    ...(ttftMs === undefined ? [] : [`TTFT ${shownMs(ttftMs)}`]),
    ...(slo.tpotMs === undefined ? [] : [`TPOT ${shownMs(slo.tpotMs)}`]),
    ...(slo.e2eMs === undefined ? [] : [`whole answer ${shownMs(slo.e2eMs)}`]),
  ]
  return `${parts.join(', ')} for ${shownObjective(slo.objectiveRatio)} of requests; ${overloadText(slo)}`
}

function overloadText({ overload, maxWaitMs }: SloClass): string {
  return overload === 'shed'
    ? 'refused when it can’t be kept'
    : `waits up to ${shownMs(maxWaitMs)} when it can’t be kept`
}

const CANDIDATE_COLUMNS: readonly Column<CandidateView>[] = [
  { head: 'REPLICA', importance: 100, cell: ({ replicaId }) => replicaId },
  { head: 'TTFT', align: 'right', importance: 95, cell: ({ predictedTtftMs }) => shownMs(predictedTtftMs) },
  { head: 'WITH MARGIN', align: 'right', importance: 90, cell: ({ boundTtftMs }) => shownMs(boundTtftMs) },
  {
    head: 'UNCACHED',
    align: 'right',
    importance: 60,
    cell: ({ uncachedTokens }) => shownCount(uncachedTokens),
  },
  { head: 'BACKLOG', align: 'right', importance: 70, cell: ({ backlogTokens }) => shownCount(backlogTokens) },
  { head: 'RUNNING', align: 'right', importance: 65, cell: (view) => shownCount(view.runningSequences) },
  { head: 'KV PEAK', align: 'right', importance: 55, cell: ({ kvPeakRatio }) => shownPercent(kvPeakRatio) },
  { head: 'STALL', align: 'right', importance: 50, cell: (view) => stallText(view.bearableStallMs) },
  { head: 'STEP', align: 'right', importance: 45, cell: ({ decodeStepMs }) => shownMs(decodeStepMs) },
  {
    head: 'GATE',
    importance: 98,
    cell: ({ gate }) => ({
      text: gate === 'ok' ? 'open' : `${gate}: ${GATE_WORDS[gate]}`,
      tone: gate === 'ok' ? 'plain' : 'warn',
    }),
  },
]

function stallText(bearableStallMs: Ms | undefined): string {
  return bearableStallMs === undefined ? NOTHING : shownMs(bearableStallMs)
}
