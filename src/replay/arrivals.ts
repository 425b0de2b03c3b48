/** Turns logged requests into arrivals for the simulator: when each came, what it asked for, and when its client gave up. */
import type { Ms } from '../core/units.ts'
import type { WorkloadRequest } from '../sim/workload-types.ts'
import type { Answers } from './answers.ts'
import type { LoggedRequest } from './logged-request.ts'
import { RUN_TOKENS, type SharedPrefixes } from './shared-prefixes.ts'

/** Where a request belongs in a configuration; undefined when that has no place for it. */
export type Placing = (
  request: LoggedRequest,
) => { readonly model: string; readonly className: string } | undefined

/** The number of a request in the log, by the name that the simulator knows it by. */
export function numberOf(simulatedId: string): number {
  return Number(simulatedId)
}

export interface Arrivals {
  readonly requests: readonly LoggedRequest[]
  readonly placing: Placing
  readonly answers: Answers
  readonly prefixes: SharedPrefixes
}

/** In order, from time 0 at the first logged request on. What has no place, or was no generation, is left out. */
export function* arrivals({
  requests,
  placing,
  answers,
  prefixes,
}: Arrivals): Generator<WorkloadRequest, void, undefined> {
  const startMs = requests[0]?.arrivedAtMs ?? 0
  for (const [number, request] of requests.entries()) {
    if (!isReplayable(request)) continue
    const place = placing(request)
    if (place === undefined) continue
    yield toArrival(request, number, place, request.arrivedAtMs - startMs, answers, prefixes)
  }
}

/** Generations that were no mistake of their client's. */
export function isReplayable({ kind, outcome }: LoggedRequest): boolean {
  return kind === 'generate' && outcome !== 'client_error'
}

function toArrival(
  request: LoggedRequest,
  number: number,
  place: NonNullable<ReturnType<Placing>>,
  atMs: Ms,
  answers: Answers,
  prefixes: SharedPrefixes,
): WorkloadRequest {
  const { maxOutputTokens, minOutputTokens, steerTtftMs, steerTpotMs } = request
  const patienceMs = patienceOf(request)
  return {
    id: String(number),
    atMs,
    className: place.className,
    tenant: request.tenant,
    promptTokens: Math.max(1, Math.round(request.promptTokens)),
    outputTokens: answers.tokensOf(request),
    ...(maxOutputTokens === undefined ? {} : { maxTokens: maxOutputTokens }),
    blocks: { names: prefixes.namesOf(request), tokens: RUN_TOKENS },
    ...(patienceMs === undefined ? {} : { patienceMs }),
    told: {
      pool: place.model,
      product: request.product,
      route: request.route,
      streamed: request.streamed,
      sequences: request.sequences,
      promptTokens: Math.max(1, Math.round(request.estimatedTokens)),
      promptTokensExact: request.estimatedTokens === request.promptTokens,
      bodyBytes: request.bodyBytes,
      retryCount: request.retryCount,
      ...(minOutputTokens === undefined ? {} : { minOutputTokens }),
      ...(steerTtftMs === undefined ? {} : { steerTtftMs }),
      ...(steerTpotMs === undefined ? {} : { steerTpotMs }),
    },
  }
}

/** Who left before seeing anything would have left then again; who stayed may have stayed for ever. */
function patienceOf({ outcome, ttftMs, e2eMs }: LoggedRequest): Ms | undefined {
  const left = outcome === 'cancelled' || (outcome === 'client_left' && ttftMs === undefined)
  return left ? e2eMs : undefined
}
