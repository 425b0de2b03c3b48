/** vLLM, V0 to V1: its gauges, its limits from metric labels, and the fields that only Sluice may set. */
import type { LoadSample } from './adapter.ts'
import { added, type LoadTally, largest, loadSample } from './load-page.ts'
import { defineEngine, OPENAI_ROUTES, wholeAbove0 } from './openai-base.ts'
import { families, labelOf, walkPage } from './prom-text.ts'

const RUNNING = 'vllm:num_requests_running'
const WAITING = 'vllm:num_requests_waiting'
const KV_USAGE = 'vllm:kv_cache_usage_perc'
const PREEMPTIONS = 'vllm:num_preemptions_total'
const STEPS = 'vllm:iteration_tokens_total_count'
const TOKENS = 'vllm:generation_tokens_total'
const SLEEP = 'vllm:engine_sleep_state'
const CACHE_CONFIG = 'vllm:cache_config_info'
const PROCESS_START = 'process_start_time_seconds'

/** V0 called some by other names. */
const WANTED = families([
  ...[RUNNING, WAITING, KV_USAGE, PREEMPTIONS, STEPS, TOKENS, SLEEP, CACHE_CONFIG, PROCESS_START],
  ['vllm:gpu_cache_usage_perc', KV_USAGE],
  ['vllm:num_preemptions', PREEMPTIONS],
])

function whole(labels: string, name: string): number | undefined {
  return wholeAbove0(Number(labelOf(labels, name)))
}

/** KV capacity of one rank in tokens; older builds leave it to be multiplied out. */
function kvCapacity(labels: string): number | undefined {
  const told = whole(labels, 'kv_cache_size_tokens')
  if (told !== undefined) return told
  const blocks = whole(labels, 'num_gpu_blocks')
  const size = whole(labels, 'block_size')
  return blocks === undefined || size === undefined ? undefined : blocks * size
}

function parseLoad(page: string): LoadSample | undefined {
  const tally: LoadTally = {}
  let steps: number | undefined
  let tokens: number | undefined
  walkPage(page, WANTED, (name, labels, value) => {
    if (name === RUNNING) tally.running = added(tally.running, value)
    else if (name === WAITING) tally.waiting = added(tally.waiting, value)
    else if (name === KV_USAGE) tally.kvUsage = largest(tally.kvUsage, value)
    else if (name === PREEMPTIONS) tally.preemptions = added(tally.preemptions, value)
    else if (name === STEPS) steps = added(steps, value)
    else if (name === TOKENS) tokens = added(tokens, value)
    else if (name === PROCESS_START) tally.processStartSec = value
    else if (name === SLEEP) {
      // Of several ranks one asleep is enough: they step together.
      if (labelOf(labels, 'sleep_state') === 'awake') tally.asleep = tally.asleep === true || value === 0
    } else if (name === CACHE_CONFIG) {
      const capacity = kvCapacity(labels)
      if (capacity !== undefined) tally.kvCapacityTokens = added(tally.kvCapacityTokens, capacity)
    }
  })
  const progress = steps ?? tokens
  return loadSample(progress === undefined ? tally : { ...tally, progress })
}

export const vllm = defineEngine({
  kind: 'vllm',
  loadPaths: ['/metrics'],
  healthPath: '/health',
  routes: [...OPENAI_ROUTES, 'responses', 'messages', 'embeddings', 'tokenize', 'detokenize'],
  ownedFields: ['priority', 'kv_transfer_params', 'ec_transfer_params', 'request_id'],
  ownedHeaders: ['x-data-parallel-rank', 'x-request-id', 'x-vllm-priority'],
  // Lower is sooner; 0 is what requests without the field have.
  priorityEdit: (urgency) => ({ priority: String(0 - urgency) }),
  parseLoad,
})
