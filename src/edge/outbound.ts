/** What leaves towards an engine: an allow-list of headers and the client's own bytes with a few members spliced. */
import type { IncomingHttpHeaders } from 'node:http'
import { hasTargets, type SloClass } from '../core/request.ts'
import { clamp } from '../core/units.ts'
import type { BodyEdits, EngineAdapter } from '../engines/adapter.ts'
import type { ModelRename } from '../engines/rename.ts'
import { asksForUsage, type RequestShape } from './request-shape.ts'
import type { TraceHeaders } from './request-trace.ts'
import type { Route } from './routes.ts'

/** Client headers that an engine may see. Its key, cookies and hop-by-hop headers are none of them. */
const FORWARDED = [
  'accept',
  'anthropic-beta',
  'anthropic-version',
  'baggage',
  'content-type',
  'traceparent',
  'tracestate',
  'user-agent',
]

export interface OutboundFacts {
  readonly route: Route
  readonly shape: RequestShape
  /** The model's name as the engine knows it. */
  readonly engineName: string
  /** The tenant may set the engine's scheduling fields itself. */
  readonly scheduling: boolean
  /** More is sooner, 0 without a promise; absent when the engines don't order by it. */
  readonly urgency?: number
  /** How the model is named in the answer, where it is not as the engine names it. */
  readonly rename?: ModelRename | undefined
}

/**
 * Headers for one attempt. Compressed answers would hide their frames, so identity is asked for. `trace` takes the
 * place of the client's own trace headers, which are passed on as they came without it.
 */
export function outboundHeaders(
  headers: IncomingHttpHeaders,
  adapter: Pick<EngineAdapter, 'ownedHeaders'>,
  facts: Pick<OutboundFacts, 'scheduling'>,
  engineRequestId: string,
  trace?: TraceHeaders,
): Record<string, string> {
  const kept: Record<string, string> = {}
  const names = facts.scheduling ? [...FORWARDED, ...adapter.ownedHeaders] : FORWARDED
  for (const name of names) {
    const value = headers[name]
    if (typeof value === 'string') kept[name] = value
  }
  kept['accept-encoding'] = 'identity'
  kept['x-request-id'] = engineRequestId
  if (trace === undefined) return kept
  kept.traceparent = trace.traceparent
  if (trace.tracestate === undefined) delete kept.tracestate
  return kept
}

/** Whether we ask for usage where the client did not; then its frame is taken out of the stream again. */
export function injectsUsage({ route, shape }: Pick<OutboundFacts, 'route' | 'shape'>): boolean {
  return route.usageOption && shape.streamed && !asksForUsage(shape)
}

/** Urgency that a class of weight 1 has, and the most that any has. */
const URGENCY_UNIT = 10
const MAX_URGENCY = 1000

/**
 * How urgent a class is towards an engine: its weight in tenths, 0 when it promises nothing. Deadlines would order finer,
 * but an engine that also preempts by priority would then throw out streams for requests that are a moment tighter.
 */
export function urgencyOf(slo: SloClass): number {
  return hasTargets(slo) ? clamp(Math.round(slo.weight * URGENCY_UNIT), 1, MAX_URGENCY) : 0
}

type Scheduling = Pick<EngineAdapter, 'ownedFields' | 'priorityEdit'>

/** The members of the body that change on the way to that engine; empty when the bytes go as they came. */
export function bodyEdits(facts: OutboundFacts, adapter: Scheduling): BodyEdits {
  const { route, shape, engineName } = facts
  const edits: Record<string, string | undefined> = {}
  const namesModel = shape.model !== undefined || route.dialect !== 'tgi'
  if (namesModel && shape.model !== engineName) edits.model = JSON.stringify(engineName)
  if (injectsUsage(facts)) {
    const { streamOptions } = shape
    // Without usage this wish means nothing; with ours it would put figures into each of the client's frames.
    const everyFrame =
      streamOptions?.continuous_usage_stats === undefined ? {} : { continuous_usage_stats: false }
    edits.stream_options = JSON.stringify({ ...streamOptions, include_usage: true, ...everyFrame })
  }
  if (!facts.scheduling) {
    for (const field of adapter.ownedFields) if (shape.fields.has(field)) edits[field] = undefined
  }
  const { urgency = 0 } = facts
  const own = urgency > 0 ? adapter.priorityEdit?.(urgency) : undefined
  for (const [field, value] of Object.entries(own ?? {}))
    if (!facts.scheduling || !shape.fields.has(field)) edits[field] = value
  return edits
}
