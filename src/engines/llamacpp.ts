/** llama.cpp's server: two gauges, no KV figure, and a header that would keep an aborted generation running. */
import type { LoadSample } from './adapter.ts'
import { type LoadTally, loadSample } from './load-page.ts'
import { defineEngine, OPENAI_ROUTES } from './openai-base.ts'
import { families, walkPage } from './prom-text.ts'

const RUNNING = 'llamacpp:requests_processing'
const WAITING = 'llamacpp:requests_deferred'
const DECODES = 'llamacpp:n_decode_total'

const WANTED = families([RUNNING, WAITING, DECODES])

function parseLoad(page: string): LoadSample | undefined {
  const tally: LoadTally = {}
  walkPage(page, WANTED, (name, _labels, value) => {
    if (name === RUNNING) tally.running = value
    else if (name === WAITING) tally.waiting = value
    else tally.progress = value
  })
  return loadSample(tally)
}

export const llamacpp = defineEngine({
  kind: 'llamacpp',
  metricsPath: '/metrics',
  healthPath: '/health',
  routes: [...OPENAI_ROUTES, '/v1/responses', '/v1/messages', '/v1/embeddings', '/tokenize', '/detokenize'],
  ownedFields: ['id_slot'],
  // With it the server goes on generating for a client that has left.
  ownedHeaders: ['x-conversation-id'],
  parseLoad,
})
