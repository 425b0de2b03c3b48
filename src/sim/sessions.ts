/** Draws conversations: turns that grow out of each other. */
import type { Ratio, Tokens } from '../core/units.ts'
import { drawMs, drawTokens } from './lengths.ts'
import type { Rng } from './rng.ts'
import type { SessionLaw, UnsentRequest, WorkloadClass } from './workload-types.ts'

interface TurnOptions {
  readonly lengthRatio: Ratio
  /** A turn whose prompt would be longer is never sent. */
  readonly longestTokens: Tokens
  readonly rng: Rng
}

/** Turns before a request, mean over all requests of sessions: of a geometric count with mean m it is m - 1. */
export function meanEarlierTurns({ meanTurns }: SessionLaw): number {
  return meanTurns - 1
}

/** The session that opens with `first`: the same request with its later turns linked behind it. */
export function withTurns(first: UnsentRequest, entry: WorkloadClass, options: TurnOptions): UnsentRequest {
  const { session } = entry
  if (session === undefined) return first
  if (!(session.meanTurns >= 1))
    throw new RangeError(`meanTurns must be at least 1, got ${session.meanTurns}`)
  const turns = [{ ...first, text: first.id }]
  const thinks: number[] = []
  for (let last = turns[0]; last !== undefined && options.rng.uniform() >= 1 / session.meanTurns; ) {
    thinks.push(drawMs(session.think, options.rng))
    const next = nextTurn(last, turns.length, entry, session, options)
    if (next.promptTokens > options.longestTokens) break
    turns.push(next)
    last = next
  }
  return (
    turns.reduceRight((next: UnsentRequest | undefined, turn, at) => {
      return next === undefined ? turn : { ...turn, next: { thinkMs: thinks[at] ?? 0, request: next } }
    }, undefined) ?? first
  )
}

function nextTurn(
  last: UnsentRequest & { readonly text: string },
  turn: number,
  entry: WorkloadClass,
  session: SessionLaw,
  { lengthRatio, rng }: TurnOptions,
) {
  const scale = (tokens: Tokens) => Math.max(1, Math.round(tokens * lengthRatio))
  const addedTokens = scale(drawTokens(session.added, rng))
  const outputTokens = scale(Math.min(drawTokens(entry.output, rng), entry.maxTokens))
  return {
    ...last,
    id: `${last.text}.${turn}`,
    promptTokens: last.promptTokens + last.outputTokens + addedTokens,
    outputTokens,
  }
}
