/** SGLang: its load per rank, its limits, and the scheduling fields that only Sluice may set. */
import type { EngineLimits } from '../core/replica.ts'
import type { LoadSample } from './adapter.ts'
import { asObject, parseJson } from './failures.ts'
import { added, isFigure, type LoadTally, largest, loadSample } from './load-page.ts'
import { defineEngine, OPENAI_ROUTES, readModelList, wholeAbove0 } from './openai-base.ts'
import { families, labelOf, walkPage } from './prom-text.ts'

const RUNNING = 'sglang:num_running_reqs'
const WAITING = 'sglang:num_queue_reqs'
const GRAMMAR = 'sglang:num_grammar_queue_reqs'
const KV_USAGE = 'sglang:token_usage'
const CAPACITY = 'sglang:max_total_num_tokens'
const RETRACTED = 'sglang:num_retracted_requests_total'
const TOKENS = 'sglang:realtime_tokens_total'

const WANTED = families([RUNNING, WAITING, GRAMMAR, KV_USAGE, CAPACITY, RETRACTED, TOKENS])

/** Series that repeat others: further tensor-parallel ranks, and the split of a total by priority. */
function repeats(labels: string): boolean {
  return (labelOf(labels, 'tp_rank') ?? '0') !== '0' || (labelOf(labels, 'priority') ?? '') !== ''
}

/** `/v1/loads` as JSON: there without any flag and fresher than the metrics, which builds before 2026 have alone. */
function parseLoad(page: string): LoadSample | undefined {
  const tally: LoadTally = {}
  if (page.startsWith('{')) readLoads(page, tally)
  else readMetrics(page, tally)
  return loadSample(tally)
}

/** What is summed over the ranks of `/v1/loads`. */
const SUMMED = [
  ['num_running_reqs', 'running'],
  ['num_waiting_reqs', 'waiting'],
  ['max_total_num_tokens', 'kvCapacityTokens'],
  ['max_running_requests', 'maxNumSeqs'],
] as const

function readLoads(page: string, tally: LoadTally): void {
  const loads = asObject(parseJson(page))?.loads
  if (!Array.isArray(loads)) return
  for (const entry of loads) {
    const rank = asObject(entry) ?? {}
    for (const [name, field] of SUMMED) {
      const value = rank[name]
      if (isFigure(value)) tally[field] = added(tally[field], value)
    }
    if (isFigure(rank.token_usage)) tally.kvUsage = largest(tally.kvUsage, rank.token_usage)
    // The first of its moments counts decode steps; prefill alone would stand still under long answers.
    const steps: unknown = Array.isArray(rank.decode_moments) ? rank.decode_moments[0] : undefined
    const prefilled = rank.total_prefill_uncached_tokens
    if (isFigure(steps) && isFigure(prefilled)) tally.progress = added(tally.progress, steps + prefilled)
  }
}

function readMetrics(page: string, tally: LoadTally): void {
  walkPage(page, WANTED, (name, labels, value) => {
    if (repeats(labels)) return
    if (name === RUNNING) tally.running = added(tally.running, value)
    else if (name === WAITING || name === GRAMMAR) tally.waiting = added(tally.waiting, value)
    else if (name === KV_USAGE) tally.kvUsage = largest(tally.kvUsage, value)
    else if (name === CAPACITY) tally.kvCapacityTokens = added(tally.kvCapacityTokens, value)
    else if (name === RETRACTED) tally.preemptions = added(tally.preemptions, value)
    else if (name === TOKENS) tally.progress = added(tally.progress, value)
  })
}

/** `/v1/models`, or `/server_info` with the arguments that it was started with. */
function parseLimits(page: string, servedName: string): EngineLimits {
  const info = asObject(parseJson(page))
  const chunk = wholeAbove0(info?.chunked_prefill_size)
  return {
    ...readModelList(page, servedName),
    ...(chunk === undefined ? {} : { maxNumBatchedTokens: chunk }),
  }
}

export const sglang = defineEngine({
  kind: 'sglang',
  loadPaths: ['/v1/loads', '/metrics'],
  limitsPaths: ['/v1/models', '/server_info'],
  // `/health` runs a real generation of a second or more; `/ping` doesn't.
  healthPath: '/ping',
  routes: [...OPENAI_ROUTES, 'responses', 'messages', 'embeddings', 'tokenize', 'detokenize'],
  ownedFields: [
    'priority',
    'rid',
    'routed_dp_rank',
    'data_parallel_rank',
    'bootstrap_host',
    'bootstrap_port',
    'bootstrap_room',
  ],
  ownedHeaders: ['x-data-parallel-rank', 'x-smg-routing-key', 'x-request-id'],
  // Higher is sooner, unless the server was started with --schedule-low-priority-values-first.
  priorityEdit: (urgency) => ({ priority: String(urgency) }),
  parseLoad,
  parseLimits,
})
