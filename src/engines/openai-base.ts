/** What all engines with an OpenAI-shaped surface share; each kind overrides what differs. */
import type { EngineLimits } from '../core/replica.ts'
import type {
  BodyEdits,
  Dialect,
  EngineAdapter,
  EngineKind,
  LoadSample,
  ResponseClass,
  RouteKey,
  TapOptions,
  WholeReading,
} from './adapter.ts'
import { asObject, classOfFailure, type Failure, parseJson, readFailure } from './failures.ts'
import { anthropicFinish, openaiFinishes, responsesFinish, tgiFinish } from './finish.ts'
import { createTap } from './tap.ts'
import { anthropicUsage, openaiUsage, responsesUsage, tgiUsage } from './usage.ts'

export const OPENAI_ROUTES = ['chat', 'completions'] as const

/** What makes an engine kind differ from a plain OpenAI server. */
export interface EngineTraits {
  readonly kind: EngineKind
  readonly loadPaths?: readonly string[]
  readonly limitsPaths?: readonly string[]
  readonly healthPath: string
  readonly routes: readonly RouteKey[]
  readonly ownedFields?: readonly string[]
  readonly ownedHeaders?: readonly string[]
  readonly priorityEdit?: (urgency: number) => BodyEdits
  readonly parseLoad?: (page: string) => LoadSample | undefined
  readonly parseLimits?: (page: string, servedName: string) => EngineLimits
  readonly readWhole?: EngineAdapter['readWhole']
  /** Failures whose status is not to be believed; undefined leaves the judgement to `classOfFailure`. */
  readonly classOf?: (failure: Failure) => ResponseClass | undefined
  readonly probe?: (servedName: string) => { readonly path: string; readonly body: string }
}

/** What a whole answer says by its body alone. */
export function readWhole(dialect: Dialect, body: Uint8Array): WholeReading {
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

/** The context length that `/v1/models` tells for the served name, else the longest one there. */
export function readModelList(page: string, servedName: string): EngineLimits {
  const list = asObject(parseJson(page))?.data
  if (!Array.isArray(list)) return {}
  const lengths = list.flatMap((entry) => {
    const model = asObject(entry)
    const length = wholeAbove0(model?.max_model_len)
    return length === undefined ? [] : [{ id: model?.id, length }]
  })
  const longest = lengths.reduce((most, { length }) => Math.max(most, length), 0)
  const maxModelLenTokens = lengths.find(({ id }) => id === servedName)?.length ?? longest
  return maxModelLenTokens === 0 ? {} : { maxModelLenTokens }
}

/** A limit as engines print it: a whole number above 0; others (`null`, -1 for "none") are none. */
export function wholeAbove0(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isSafeInteger(value) && value > 0 ? value : undefined
}

type ClassOf = (status: number, failure: Failure) => ResponseClass

function classOfBody(classOf: ClassOf): EngineAdapter['classify'] {
  return (status, body) => {
    if (status < 400) return { class: 'ok', message: '' }
    const text = Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString('utf8')
    const failure = readFailure(parseJson(text)) ?? { type: '', message: text.slice(0, 200) }
    return { class: classOf(status, failure), message: failure.message || `status ${status}` }
  }
}

/** One greedy token: cheap, and it passes through the whole engine. */
function completionProbe(servedName: string): { readonly path: string; readonly body: string } {
  const body = { model: servedName, prompt: '1', max_tokens: 1, temperature: 0, stream: false }
  return { path: '/v1/completions', body: JSON.stringify(body) }
}

/** Builds the adapter of an engine kind from what differs. */
export function defineEngine(traits: EngineTraits): EngineAdapter {
  const { kind, healthPath, routes, priorityEdit } = traits
  const classOf: ClassOf = (status, failure) => traits.classOf?.(failure) ?? classOfFailure(status, failure)
  const tapClassOf = (failure: Failure): ResponseClass => classOf(200, failure)
  return {
    kind,
    loadPaths: traits.loadPaths ?? [],
    limitsPaths: traits.limitsPaths ?? ['/v1/models'],
    healthPath,
    routes,
    ownedFields: traits.ownedFields ?? [],
    ownedHeaders: traits.ownedHeaders ?? [],
    ...(priorityEdit === undefined ? {} : { priorityEdit }),
    parseLoad: traits.parseLoad ?? (() => undefined),
    parseLimits: traits.parseLimits ?? readModelList,
    createTap: ({ dialect, stripUsage }: TapOptions) =>
      createTap({ dialect, stripUsage, classOf: tapClassOf }),
    readWhole: traits.readWhole ?? readWhole,
    classify: classOfBody(classOf),
    probe: traits.probe ?? completionProbe,
  }
}
