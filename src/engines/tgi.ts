/** Text Generation Inference: gauges that appear after first use, and its own two routes. */
import type { LoadSample } from './adapter.ts'
import { type LoadTally, loadSample } from './load-page.ts'
import { defineEngine, OPENAI_ROUTES } from './openai-base.ts'
import { families, walkPage } from './prom-text.ts'

const WAITING = 'tgi_queue_size'
const RUNNING = 'tgi_batch_current_size'
const BATCHES = 'tgi_batch_inference_count'

const WANTED = families([WAITING, RUNNING, BATCHES])

function parseLoad(page: string): LoadSample | undefined {
  const tally: LoadTally = {}
  walkPage(page, WANTED, (name, _labels, value) => {
    if (name === WAITING) tally.waiting = value
    else if (name === RUNNING) tally.running = value
    else tally.progress = (tally.progress ?? 0) + value
  })
  return loadSample(tally)
}

export const tgi = defineEngine({
  kind: 'tgi',
  metricsPath: '/metrics',
  healthPath: '/health',
  routes: [...OPENAI_ROUTES, '/generate', '/generate_stream', '/tokenize'],
  parseLoad,
  probe: () => ({
    path: '/generate',
    body: JSON.stringify({ inputs: '1', parameters: { max_new_tokens: 1 } }),
  }),
})
