/** How a decision is told to the client: response headers, and a sentence for a refusal. */
import type { GateEffect } from '../core/effects.ts'
import type { DecisionRecord } from '../core/records.ts'
import { admittedWord } from '../slo/decision-word.ts'

/** What a client learns of the decision. The replica goes by its name, never by its URL. */
export function decisionHeaders(
  record: DecisionRecord,
  replicaName: string | undefined,
): Record<string, string> {
  const { offer, attempt, waitedMs, candidates, verdict } = record
  const replicaId = verdict.kind === 'admit' ? verdict.replicaId : undefined
  const predictedMs = candidates.find((candidate) => candidate.replicaId === replicaId)?.predictedTtftMs
  const headers: Record<string, string> = {
    'x-sluice-class': offer.slo.name,
    'x-sluice-decision': admittedWord(attempt, waitedMs),
    'x-sluice-queue-ms': String(Math.round(waitedMs)),
  }
  if (predictedMs !== undefined) headers['x-sluice-predicted-ttft-ms'] = String(Math.round(predictedMs))
  if (replicaName !== undefined) headers['x-sluice-replica'] = replicaName
  return headers
}

const SHED_MESSAGES = {
  slo_unreachable: 'no replica can meet the latency target of this class in time',
  waiting_full: 'too many requests wait already',
  wait_expired: 'the request waited as long as its class allows',
  tenant_limit: "this tenant's own limit is reached",
  infeasible: 'not even an idle replica could meet the latency target for a prompt of this size',
  no_replica: 'no replica of this model is live',
} as const

/** The sentence that goes with a shed. */
export function shedMessage({ reason, record }: Extract<GateEffect, { kind: 'shed' }>): string {
  return `${SHED_MESSAGES[reason]} (class ${record.offer.slo.name}, model ${record.offer.pool})`
}
