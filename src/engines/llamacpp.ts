/** llama.cpp's server: load from its metrics or its slots, limits from its properties, and no KV figure. */
import type { EngineLimits } from '../core/replica.ts'
import type { LoadSample } from './adapter.ts'
import { asObject, parseJson } from './failures.ts'
import { type LoadTally, loadSample } from './load-page.ts'
import { defineEngine, OPENAI_ROUTES, wholeAbove0 } from './openai-base.ts'
import { families, walkPage } from './prom-text.ts'

const RUNNING = 'llamacpp:requests_processing'
const WAITING = 'llamacpp:requests_deferred'
const DECODES = 'llamacpp:n_decode_total'

const WANTED = families([RUNNING, WAITING, DECODES])

/** Metrics text, or `/slots` as JSON where the server runs without `--metrics`: that shows what runs and not what waits. */
function parseLoad(page: string): LoadSample | undefined {
  const tally: LoadTally = {}
  if (page.startsWith('[')) readSlots(page, tally)
  else {
    walkPage(page, WANTED, (name, _labels, value) => {
      if (name === RUNNING) tally.running = value
      else if (name === WAITING) tally.waiting = value
      else tally.progress = value
    })
  }
  return loadSample(tally)
}

function readSlots(page: string, tally: LoadTally): void {
  const slots = parseJson(page)
  if (!Array.isArray(slots)) return
  const busy = slots.map((slot) => asObject(slot)?.is_processing)
  if (busy.length === 0 || !busy.every((it) => typeof it === 'boolean')) return
  tally.running = busy.filter(Boolean).length
  tally.maxNumSeqs = busy.length
}

/** `/props`: slots, and the context of each; together they are the KV cache. */
function parseLimits(page: string): EngineLimits {
  const props = asObject(parseJson(page))
  const slots = wholeAbove0(props?.total_slots)
  const context = wholeAbove0(asObject(props?.default_generation_settings)?.n_ctx)
  return {
    ...(slots === undefined ? {} : { maxNumSeqs: slots }),
    ...(context === undefined ? {} : { maxModelLenTokens: context }),
    ...(slots === undefined || context === undefined ? {} : { kvCapacityTokens: slots * context }),
  }
}

export const llamacpp = defineEngine({
  kind: 'llamacpp',
  loadPaths: ['/metrics', '/slots'],
  limitsPaths: ['/props'],
  healthPath: '/health',
  routes: [...OPENAI_ROUTES, 'responses', 'messages', 'embeddings', 'tokenize', 'detokenize'],
  ownedFields: ['id_slot'],
  // With it the server goes on generating for a client that has left.
  ownedHeaders: ['x-conversation-id'],
  parseLoad,
  parseLimits,
})
