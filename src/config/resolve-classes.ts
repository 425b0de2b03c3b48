/** Makes a class of the file into the promise that the core knows, defaults filled in. */
import type { SloClass } from '../core/request.ts'
import type { FileTargets } from './schema.ts'

/** Prompt size whose target bounds the wait of a class with growing targets, in thousands of tokens. */
const LONG_PROMPT_KTOKENS = 32
/** Longest wait without any better hint: the patience of a person, in ms. */
const PATIENCE_MS = 30_000
/** Longest wait of traffic without targets, in ms: it only wants to get through. */
const UNPROMISED_WAIT_MS = 60_000
const DEFAULT_OBJECTIVE = 0.99

/** What stands in `override` wins over `base`, key by key. */
export function mergeTargets(base: FileTargets, override: FileTargets): FileTargets {
  return { ...base, ...override }
}

/** Absent targets stay absent. */
export function resolveClass(name: string, targets: FileTargets): SloClass {
  const { ttft, tpot, e2e } = targets
  const promises = ttft !== undefined || tpot !== undefined || e2e !== undefined
  const overload = targets.overload ?? (promises ? 'shed' : 'wait')
  return {
    name,
    ...(ttft !== undefined && { ttftMs: ttft }),
    ttftPer1kTokensMs: targets.ttft_per_1k_tokens ?? 0,
    ...(tpot !== undefined && { tpotMs: tpot }),
    ...(e2e !== undefined && { e2eMs: e2e }),
    ...(promises && { objectiveRatio: targets.objective ?? DEFAULT_OBJECTIVE }),
    weight: targets.weight ?? 1,
    overload,
    maxWaitMs: targets.max_wait ?? defaultMaxWaitMs(targets, overload, promises),
  }
}

/**
 * Who is shed when late has no use for a place beyond its TTFT target (that of a long prompt, where it grows); who
 * may be late keeps it as long as the whole answer may take, or as long as a person waits.
 */
function defaultMaxWaitMs(targets: FileTargets, overload: SloClass['overload'], promises: boolean): number {
  const { ttft, ttft_per_1k_tokens: per1kTokensMs = 0, e2e } = targets
  if (!promises) return UNPROMISED_WAIT_MS
  if (overload === 'shed' && ttft !== undefined) return ttft + LONG_PROMPT_KTOKENS * per1kTokensMs
  return e2e ?? PATIENCE_MS
}
