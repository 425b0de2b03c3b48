/** Text Generation Inference: gauges that appear after first use, its own two routes, and statuses that mislead. */
import type { EngineLimits } from '../core/replica.ts'
import type { EngineAdapter, LoadSample, ResponseClass } from './adapter.ts'
import { asObject, type Failure, parseJson } from './failures.ts'
import { type LoadTally, loadSample } from './load-page.ts'
import { defineEngine, OPENAI_ROUTES, readWhole, wholeAbove0 } from './openai-base.ts'
import { families, walkPage } from './prom-text.ts'
import { countedUsage } from './usage.ts'

const WAITING = 'tgi_queue_size'
const RUNNING = 'tgi_batch_current_size'
const BATCHES = 'tgi_batch_inference_count'
/** On the page from the first request on, when the gauges may still be missing. */
const REQUESTS = 'tgi_request_count'

const WANTED = families([WAITING, RUNNING, BATCHES, REQUESTS])

function parseLoad(page: string): LoadSample | undefined {
  const tally: LoadTally = {}
  walkPage(page, WANTED, (name, _labels, value) => {
    if (name === WAITING) tally.waiting = value
    else if (name === RUNNING) tally.running = value
    else if (name === REQUESTS) tally.running ??= 0
    else tally.progress = (tally.progress ?? 0) + value
  })
  return loadSample(tally)
}

/** `/info`: prompt and answer together may have `max_total_tokens`. Its request limit counts those that wait, too. */
function parseLimits(page: string): EngineLimits {
  const maxModelLenTokens = wholeAbove0(asObject(parseJson(page))?.max_total_tokens)
  return maxModelLenTokens === undefined ? {} : { maxModelLenTokens }
}

/** `details` come on request only; the headers of a whole answer always count. */
const readAnswer: EngineAdapter['readWhole'] = (dialect, body, headers = {}) => {
  const read = readWhole(dialect, body)
  const counted = countedUsage(headers['x-prompt-tokens'], headers['x-generated-tokens'])
  return counted === undefined ? read : { ...read, usage: counted }
}

const OWN_FAULT = /^request failed during generation|^incomplete generation/i

/** A generation that broke is told as 424, and inside a stream as 422 like a client's mistake: its words say whose it is. */
function classOf({ type, message }: Failure): ResponseClass | undefined {
  return type === 'generation' || OWN_FAULT.test(message) ? 'engine_error' : undefined
}

export const tgi = defineEngine({
  kind: 'tgi',
  loadPaths: ['/metrics'],
  limitsPaths: ['/info'],
  healthPath: '/health',
  routes: [...OPENAI_ROUTES, 'generate', 'generate_stream', 'tokenize'],
  parseLoad,
  parseLimits,
  readWhole: readAnswer,
  classOf,
  probe: () => ({
    path: '/generate',
    body: JSON.stringify({ inputs: '1', parameters: { max_new_tokens: 1 } }),
  }),
})
