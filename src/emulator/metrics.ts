/** The emulated engine's metrics page: vLLM's names and labels over the model's numbers. */
import type { Ms } from '../core/units.ts'
import type { EngineModel } from '../sim/engine-model.ts'
import type { SequenceView, StepReport } from '../sim/engine-types.ts'
import type { Generation } from './generation.ts'
import { type Labels, PromPage } from './prom-page.ts'

const TOKEN_BOUNDS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000]
const STEP_BOUNDS = [1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16_384]
const N_BOUNDS = [1, 2, 5, 10, 20]
const TTFT_BOUNDS = [
  0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640,
  2560,
]
const GAP_BOUNDS = [
  0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80,
]
const SPAN_BOUNDS = [
  0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680,
]

/** name (without `vllm:`), kind, help, bounds */
const FAMILIES: readonly (readonly [
  string,
  'counter' | 'gauge' | 'histogram',
  string,
  (readonly number[])?,
])[] = [
  ['num_requests_running', 'gauge', 'Requests in the running batch.'],
  ['num_requests_waiting', 'gauge', 'Requests waiting for a place.'],
  ['num_requests_waiting_by_reason', 'gauge', 'Waiting requests by reason.'],
  ['engine_sleep_state', 'gauge', 'One for the state that the engine is in.'],
  ['kv_cache_usage_perc', 'gauge', 'Share of KV blocks in use, 1 is all.'],
  ['prefix_cache_queries_total', 'counter', 'Prompt tokens looked up in the prefix cache.'],
  ['prefix_cache_hits_total', 'counter', 'Prompt tokens found in the prefix cache.'],
  ['num_preemptions_total', 'counter', 'Requests thrown back for want of KV.'],
  ['prompt_tokens_total', 'counter', 'Prompt tokens processed.'],
  ['generation_tokens_total', 'counter', 'Tokens generated.'],
  ['request_success_total', 'counter', 'Requests finished, by reason.'],
  ['admission_rejections_total', 'counter', 'Requests refused at a queue cap.'],
  ['request_prompt_tokens', 'histogram', 'Prompt tokens of a request.', TOKEN_BOUNDS],
  ['request_generation_tokens', 'histogram', 'Tokens generated for a request.', TOKEN_BOUNDS],
  ['iteration_tokens_total', 'histogram', 'Tokens computed in a step.', STEP_BOUNDS],
  ['request_params_n', 'histogram', 'The n of a request.', N_BOUNDS],
  ['request_params_max_tokens', 'histogram', 'The max_tokens of a request.', TOKEN_BOUNDS],
  ['time_to_first_token_seconds', 'histogram', 'Arrival to first token.', TTFT_BOUNDS],
  ['inter_token_latency_seconds', 'histogram', 'Between two tokens of a request.', GAP_BOUNDS],
  ['request_time_per_output_token_seconds', 'histogram', 'Mean time per token of a request.', GAP_BOUNDS],
  ['e2e_request_latency_seconds', 'histogram', 'Arrival to last token.', SPAN_BOUNDS],
  ['request_queue_time_seconds', 'histogram', 'Time of a request in the queue.', SPAN_BOUNDS],
  ['request_prefill_time_seconds', 'histogram', 'First scheduling to first token.', SPAN_BOUNDS],
  ['request_decode_time_seconds', 'histogram', 'First to last token.', SPAN_BOUNDS],
  ['cache_config_info', 'gauge', 'The KV cache of this engine.'],
]

export interface MetricsParts {
  readonly model: EngineModel
  readonly servedName: string
  /** Unix seconds at which the engine started. */
  readonly startedSec: number
  /** Model milliseconds per millisecond of the clock. */
  readonly speedRatio: number
}

export class EngineMetrics {
  readonly #parts: MetricsParts
  readonly #page: PromPage
  readonly #labels: Labels
  readonly #lastTokenAtMs = new WeakMap<SequenceView, Ms>()

  constructor(parts: MetricsParts) {
    this.#parts = parts
    this.#labels = { engine: '0', model_name: parts.servedName }
    this.#page = new PromPage(parts.startedSec)
    this.#page.declare('process_start_time_seconds', 'gauge', 'Start of the process, in Unix seconds.')
    this.#page.declare('process_resident_memory_bytes', 'gauge', 'Resident memory.')
    for (const [name, kind, help, bounds] of FAMILIES) this.#page.declare(`vllm:${name}`, kind, help, bounds)
    this.#page.declare('http_requests_total', 'counter', 'Requests by method, status and route.')
    this.#showEmpty()
  }

  request(generation: Generation): void {
    this.#observe('request_params_n', generation.n)
  }

  rejected(reason: 'max_num_queued_reqs' | 'max_num_queued_tokens'): void {
    const labels = { model_name: this.#parts.servedName, reason }
    this.#page.add('vllm:admission_rejections_total', labels, 1)
  }

  answered(handler: string, method: string, status: number): void {
    this.#page.add('http_requests_total', { handler, method, status: `${Math.floor(status / 100)}xx` }, 1)
  }

  step(report: StepReport): void {
    this.#observe('iteration_tokens_total', report.prefillTokens + report.decodeTokens)
    for (const sequence of report.emitted) {
      const before = this.#lastTokenAtMs.get(sequence)
      if (before === undefined)
        this.#observeMs('time_to_first_token_seconds', report.endedAtMs - sequence.submittedAtMs)
      else this.#observeMs('inter_token_latency_seconds', report.endedAtMs - before)
      this.#lastTokenAtMs.set(sequence, report.endedAtMs)
    }
  }

  finished(sequence: SequenceView, atMs: Ms, reason: 'stop' | 'length', maxTokens: number): void {
    const {
      submittedAtMs,
      scheduledAtMs = atMs,
      firstTokenAtMs = atMs,
      generatedTokens,
      promptTokens,
    } = sequence
    this.#page.add('vllm:request_success_total', { ...this.#labels, finished_reason: reason }, 1)
    this.#observe('request_prompt_tokens', promptTokens)
    this.#observe('request_generation_tokens', generatedTokens)
    this.#observe('request_params_max_tokens', maxTokens)
    this.#observeMs('e2e_request_latency_seconds', atMs - submittedAtMs)
    this.#observeMs('request_queue_time_seconds', scheduledAtMs - submittedAtMs)
    this.#observeMs('request_prefill_time_seconds', firstTokenAtMs - scheduledAtMs)
    this.#observeMs('request_decode_time_seconds', atMs - firstTokenAtMs)
    const perToken = generatedTokens > 1 ? (atMs - firstTokenAtMs) / (generatedTokens - 1) : 0
    this.#observeMs('request_time_per_output_token_seconds', perToken)
  }

  /** The page. `asleep` shows in `engine_sleep_state` alone, as with the real one. */
  render(asleep: boolean, residentBytes: number): string {
    const gauges = this.#parts.model.gauges()
    const page = this.#page
    const set = (name: string, value: number, more: Labels = {}) =>
      page.set(`vllm:${name}`, { ...this.#labels, ...more }, value)
    page.set('process_start_time_seconds', {}, this.#parts.startedSec)
    page.set('process_resident_memory_bytes', {}, residentBytes)
    set('num_requests_running', gauges.runningSequences)
    set('num_requests_waiting', gauges.waitingSequences)
    set('num_requests_waiting_by_reason', gauges.waitingSequences, { reason: 'capacity' })
    set('num_requests_waiting_by_reason', 0, { reason: 'deferred' })
    set('engine_sleep_state', asleep ? 0 : 1, { sleep_state: 'awake' })
    set('engine_sleep_state', asleep ? 1 : 0, { sleep_state: 'weights_offloaded' })
    set('engine_sleep_state', 0, { sleep_state: 'discard_all' })
    set('kv_cache_usage_perc', gauges.kvUsageRatio)
    set('prefix_cache_queries_total', gauges.prefixQueryTokensTotal)
    set('prefix_cache_hits_total', gauges.prefixHitTokensTotal)
    set('num_preemptions_total', gauges.preemptionsTotal)
    set('prompt_tokens_total', gauges.promptTokensTotal)
    set('generation_tokens_total', gauges.generationTokensTotal)
    return page.render()
  }

  /** Series that a fresh engine already shows at 0. */
  #showEmpty(): void {
    for (const reason of ['stop', 'length', 'abort', 'error', 'repetition']) {
      this.#page.add('vllm:request_success_total', { ...this.#labels, finished_reason: reason }, 0)
    }
    for (const reason of ['max_num_queued_reqs', 'max_num_queued_tokens']) {
      this.#page.add('vllm:admission_rejections_total', { model_name: this.#parts.servedName, reason }, 0)
    }
    for (const [name, kind] of FAMILIES) if (kind === 'histogram') this.#observe(name, 0, 0)
    const { kv } = this.#parts.model
    const config: Labels = {
      ...this.#labels,
      block_size: `${kv.blockTokens}`,
      cache_dtype: 'auto',
      enable_prefix_caching: 'True',
      kv_cache_size_tokens: `${kv.totalBlocks * kv.blockTokens}`,
      num_gpu_blocks: `${kv.totalBlocks}`,
      num_gpu_blocks_override: 'None',
    }
    this.#page.set('vllm:cache_config_info', config, 1)
  }

  #observe(name: string, value: number, times = 1): void {
    this.#page.observe(`vllm:${name}`, this.#labels, value, times)
  }

  #observeMs(name: string, ms: Ms): void {
    this.#observe(name, ms / 1000 / this.#parts.speedRatio)
  }
}
