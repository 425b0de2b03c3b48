/** SGLang: its gauges per rank, and the scheduling fields that only Sluice may set. */
import type { LoadSample } from './adapter.ts'
import { added, type LoadTally, largest, loadSample } from './load-page.ts'
import { defineEngine, OPENAI_ROUTES } from './openai-base.ts'
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

function parseLoad(page: string): LoadSample | undefined {
  const tally: LoadTally = {}
  walkPage(page, WANTED, (name, labels, value) => {
    if (repeats(labels)) return
    if (name === RUNNING) tally.running = added(tally.running, value)
    else if (name === WAITING || name === GRAMMAR) tally.waiting = added(tally.waiting, value)
    else if (name === KV_USAGE) tally.kvUsage = largest(tally.kvUsage, value)
    else if (name === CAPACITY) tally.kvCapacityTokens = added(tally.kvCapacityTokens, value)
    else if (name === RETRACTED) tally.preemptions = added(tally.preemptions, value)
    else if (name === TOKENS) tally.progress = added(tally.progress, value)
  })
  return loadSample(tally)
}

export const sglang = defineEngine({
  kind: 'sglang',
  metricsPath: '/metrics',
  // `/health` runs a real generation of a second or more; `/ping` doesn't.
  healthPath: '/ping',
  routes: [...OPENAI_ROUTES, '/v1/responses', '/v1/messages', '/v1/embeddings', '/tokenize', '/detokenize'],
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
  parseLoad,
})
