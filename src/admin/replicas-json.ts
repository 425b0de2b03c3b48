/** The JSON of /replicas: each replica with its books, its limits and its gauges, and what was learnt of them all. */
import type { EngineLimits, ReplicaGauges } from '../core/replica.ts'
import type { Ms } from '../core/units.ts'
import type { LedgerSample, ReplicaSample } from '../telemetry/samples.ts'
import { learntJson } from './learnt-json.ts'
import type { AdminPorts } from './ports.ts'

export function replicasJson({ samples, predictor, nowMs }: AdminPorts): object {
  const atMs = nowMs()
  const learnt = predictor()
  return {
    replicas: samples.replicas().map((replica) => replicaJson(replica, atMs)),
    waiting: samples.waiting(),
    trust: samples.trust(),
    predictor: learnt === null ? null : learntJson(learnt),
  }
}

/** Its id stays inside: the name is what people know it by. */
function replicaJson({ id: _, limits, ledger, gauges, ...rest }: ReplicaSample, nowMs: Ms): object {
  return {
    ...rest,
    limits: limitsJson(limits),
    ledger: ledgerJson(ledger),
    gauges: gauges === undefined ? null : gaugesJson(gauges, nowMs),
  }
}

function limitsJson(limits: EngineLimits): object {
  return {
    max_num_seqs: limits.maxNumSeqs,
    max_num_batched_tokens: limits.maxNumBatchedTokens,
    kv_capacity_tokens: limits.kvCapacityTokens,
    max_model_len_tokens: limits.maxModelLenTokens,
    prefill_engines: limits.prefillEngines,
  }
}

function ledgerJson(ledger: LedgerSample): object {
  return {
    in_flight_requests: ledger.inFlightRequests,
    prefilling_requests: ledger.prefillingRequests,
    decoding_sequences: ledger.decodingSequences,
    backlog_tokens: ledger.backlogTokens,
    context_tokens: ledger.contextTokens,
  }
}

function gaugesJson(gauges: ReplicaGauges, nowMs: Ms): object {
  return {
    age_ms: Math.max(0, nowMs - gauges.seenAtMs),
    running_requests: gauges.runningRequests,
    waiting_requests: gauges.waitingRequests,
    kv_usage_ratio: gauges.kvUsageRatio,
    preemptions_total: gauges.preemptionsTotal,
  }
}
