/** Metrics pages as vLLM prints them: with any figures, old or new names, one engine or several. */

export interface EngineFigures {
  readonly running?: number
  readonly waiting?: number
  /** Share of the KV cache in use; `null` leaves the gauge out. */
  readonly kv?: number | null
  readonly steps?: number
}

export interface PageFigures extends EngineFigures {
  readonly startSec?: number
  readonly asleep?: boolean
  /** One set of series for each data-parallel engine, in place of the figures above. */
  readonly engines?: readonly EngineFigures[]
  /** Under which name the KV gauge goes: it was renamed in vLLM 0.9.2. */
  readonly kvName?: 'new' | 'old' | 'both'
  /** In place of `vllm:`, as a page that is not vLLM's would have it. */
  readonly prefix?: string
}

const KV_NAMES = {
  new: ['vllm:kv_cache_usage_perc'],
  old: ['vllm:gpu_cache_usage_perc'],
  both: ['vllm:gpu_cache_usage_perc', 'vllm:kv_cache_usage_perc'],
} as const

export function vllmPage(figures: PageFigures = {}): string {
  const engines = figures.engines ?? [figures]
  const text = [
    `process_start_time_seconds ${figures.startSec ?? 1.79596567496e9}`,
    ...engines.flatMap((engine, rank) => engineLines(engine, rank, figures)),
    '',
  ].join('\n')
  return figures.prefix === undefined ? text : text.replaceAll('vllm:', figures.prefix)
}

function engineLines(figures: EngineFigures, rank: number, page: PageFigures): string[] {
  const labels = `engine="${rank}",model_name="tiny"`
  const kvNames = figures.kv === null ? [] : KV_NAMES[page.kvName ?? 'new']
  return [
    `vllm:num_requests_running{${labels}} ${figures.running ?? 0}.0`,
    `vllm:num_requests_waiting{${labels}} ${figures.waiting ?? 0}.0`,
    `vllm:engine_sleep_state{${labels},sleep_state="awake"} ${page.asleep === true ? '0.0' : '1.0'}`,
    ...kvNames.map((name) => `${name}{${labels}} ${figures.kv ?? 0}`),
    `vllm:iteration_tokens_total_count{${labels}} ${figures.steps ?? 0}`,
    `vllm:cache_config_info{block_size="128",engine="${rank}",kv_cache_size_tokens="20480",num_gpu_blocks="160"} 1.0`,
  ]
}
