/** What all engines with an OpenAI-shaped surface share; each kind overrides what differs. */
import type {
  Dialect,
  EngineAdapter,
  EngineKind,
  LoadSample,
  StreamTap,
  TapOptions,
  WholeReading,
} from './adapter.ts'
import { asObject, classOfFailure, parseJson, readFailure } from './failures.ts'
import { anthropicFinish, openaiFinishes, responsesFinish, tgiFinish } from './finish.ts'
import { createTap } from './tap.ts'
import { anthropicUsage, openaiUsage, responsesUsage, tgiUsage } from './usage.ts'

export const OPENAI_ROUTES = ['/v1/chat/completions', '/v1/completions', '/v1/models'] as const

/** What makes an engine kind differ from a plain OpenAI server. */
export interface EngineTraits {
  readonly kind: EngineKind
  readonly metricsPath?: string
  readonly healthPath: string
  readonly routes: readonly string[]
  readonly ownedFields?: readonly string[]
  readonly ownedHeaders?: readonly string[]
  readonly parseLoad?: (page: string) => LoadSample | undefined
  readonly probe?: (servedName: string) => { readonly path: string; readonly body: string }
}

function readWhole(dialect: Dialect, body: Uint8Array): WholeReading {
  const parsed = parseJson(Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString('utf8'))
  const value = asObject(Array.isArray(parsed) ? parsed[0] : parsed)
  if (value === undefined) return {}
  switch (dialect) {
    case 'openai':
      return { usage: openaiUsage(value.usage), finishReason: openaiFinishes(value).at(-1) }
    case 'responses':
      return { usage: responsesUsage(value.usage), finishReason: responsesFinish(value) }
    case 'anthropic':
      return { usage: anthropicUsage(value.usage), finishReason: anthropicFinish(value) }
    case 'tgi':
      return { usage: tgiUsage(value.details), finishReason: tgiFinish(value) }
    default:
      return dialect satisfies never
  }
}

function classify(status: number, body: Uint8Array): ReturnType<EngineAdapter['classify']> {
  if (status < 400) return { class: 'ok', message: '' }
  const text = Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString('utf8')
  const failure = readFailure(parseJson(text)) ?? { type: '', message: text.slice(0, 200) }
  return { class: classOfFailure(status, failure), message: failure.message || `status ${status}` }
}

/** One greedy token: cheap, and it passes through the whole engine. */
function completionProbe(servedName: string): { readonly path: string; readonly body: string } {
  const body = { model: servedName, prompt: '1', max_tokens: 1, temperature: 0, stream: false }
  return { path: '/v1/completions', body: JSON.stringify(body) }
}

/** Builds the adapter of an engine kind from what differs. */
export function defineEngine(traits: EngineTraits): EngineAdapter {
  return {
    kind: traits.kind,
    metricsPath: traits.metricsPath,
    healthPath: traits.healthPath,
    routes: traits.routes,
    ownedFields: traits.ownedFields ?? [],
    ownedHeaders: traits.ownedHeaders ?? [],
    parseLoad: traits.parseLoad ?? (() => undefined),
    createTap: (options: TapOptions): StreamTap => createTap(options),
    readWhole,
    classify,
    probe: traits.probe ?? completionProbe,
  }
}
