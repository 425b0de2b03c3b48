/** Latency profiles: what one engine step costs on a given model, GPU and tensor parallelism. */
import { finite, type Ms, type Tokens } from '../core/units.ts'
import { PROFILE_TABLE, type ProfileSource } from './profile-table.ts'

/**
 * Step costs of one replica, in ms and tokens.
 *
 * - a step with prefill of n tokens after c earlier ones and b decoding sequences of K context tokens in all:
 *   `max(floor, base + perToken * (n + b)) + perTokenContext * n * (c + n / 2) + perContextToken * K + stepOverhead`
 * - a step of decodes only: `decodeBase + perSequence * b + perContextToken * K + stepOverhead`
 * - a request also spends `requestOverheadMs` outside the steps (HTTP, tokenizing, detokenizing).
 */
export interface EngineProfile {
  readonly id: string
  readonly source: ProfileSource
  readonly prefill: {
    readonly floorMs: Ms
    readonly baseMs: Ms
    readonly perTokenMs: Ms
    readonly perTokenContextMs: Ms
  }
  readonly decode: { readonly baseMs: Ms; readonly perSequenceMs: Ms; readonly perContextTokenMs: Ms }
  readonly stepOverheadMs: Ms
  readonly requestOverheadMs: Ms
  /** KV cache of the whole replica. */
  readonly kvCapacityTokens: Tokens
  /** What the engine would choose for itself on that GPU when it is not told otherwise. */
  readonly defaults: { readonly maxNumSeqs: number; readonly maxNumBatchedTokens: Tokens }
}

/**
 * Where the constants come from. They are our own least-squares fits (mean error 1 to 5 % on the fitted grid) to
 * kernel times composed from these published tables; against independent load tests the inter-token time of a lightly
 * loaded replica is within 10 %, and the TTFT of long prompts on an idle H200 comes out 5 to 17 % too high.
 */
export const PROFILE_SOURCES: Readonly<
  Record<ProfileSource, { readonly origin: string; readonly license: string }>
> = {
  aiconfigurator: {
    origin:
      'github.com/ai-dynamo/aiconfigurator at 095f58a51c4ca8e61b66ec108d86f223f8d559ce, tables of vLLM 0.24.0 (A100: 0.14.0)',
    license: 'Apache-2.0',
  },
  vidur: {
    origin: 'github.com/microsoft/vidur at 7d47513363ec447a741ac5e47241580b47724fbf',
    license: 'MIT',
  },
  invented: {
    origin: 'made up for the demo: slow enough that a laptop never is the bottleneck',
    license: 'Apache-2.0',
  },
}

/** Time of a request outside the engine's steps, in ms; set by hand from load tests of a 75-token prompt. */
const REQUEST_OVERHEAD_MS: Ms = 15

/** Host time of a step in ms, set by hand likewise; the second is for kernels measured in an older engine. */
const STEP_OVERHEAD_MS: Ms = 0.5
const OLD_STEP_OVERHEAD_MS: Ms = 1

/** The decode fits end at a batch of 256, so no profile runs more by default, although vLLM would on large GPUs. */
const LARGEST_FITTED_BATCH = 256

/** The profile of the demo: invented, at most about 480 tokens/s for a full batch of 16. */
const SLOW_PROFILE: EngineProfile = {
  id: 'demo/slow',
  source: 'invented',
  prefill: { floorMs: 26, baseMs: 20, perTokenMs: 0.25, perTokenContextMs: 1e-6 },
  decode: { baseMs: 25, perSequenceMs: 0.5, perContextTokenMs: 1e-5 },
  stepOverheadMs: STEP_OVERHEAD_MS,
  requestOverheadMs: 5,
  kvCapacityTokens: 24_576,
  defaults: { maxNumSeqs: 16, maxNumBatchedTokens: 512 },
}

const PROFILES: ReadonlyMap<string, EngineProfile> = new Map(
  [...PROFILE_TABLE.trim().split('\n').map(fromLine), SLOW_PROFILE].map((entry) => [entry.id, entry]),
)

/** Every profile id, in table order. */
export function profileIds(): readonly string[] {
  return [...PROFILES.keys()]
}

/** The profile of that id, e.g. `Llama-3.1-8B/H100-80G-SXM/tp1`. Throws a RangeError that names the nearest ids. */
export function profile(id: string): EngineProfile {
  const found = PROFILES.get(id)
  if (found === undefined) {
    throw new RangeError(`unknown profile "${id}"; the nearest are: ${nearestProfiles(id, 4).join(', ')}`)
  }
  return found
}

/** The ids that share most letter pairs with `id`, best first. */
export function nearestProfiles(id: string, count: number): readonly string[] {
  const wanted = letterPairs(id)
  const scored = profileIds().map((candidate) => {
    const pairs = letterPairs(candidate)
    let shared = 0
    for (const pair of wanted) if (pairs.has(pair)) shared++
    return { candidate, score: (2 * shared) / (wanted.size + pairs.size) }
  })
  return scored
    .sort((a, b) => b.score - a.score)
    .slice(0, count)
    .map((entry) => entry.candidate)
}

function letterPairs(text: string): ReadonlySet<string> {
  const lower = text.toLowerCase()
  const pairs = new Set<string>()
  for (let at = 0; at + 1 < lower.length; at++) pairs.add(lower.slice(at, at + 2))
  return pairs
}

function fromLine(line: string): EngineProfile {
  const [id = '', source = '', ...numbers] = line.split(/\s+/)
  const [kvCapacityTokens, floorMs, baseMs, perTokenMs, perTokenContextMs, ...decode] = numbers.map(Number)
  const vidur = source === 'vidur'
  return {
    id,
    source: vidur ? 'vidur' : 'aiconfigurator',
    prefill: {
      floorMs: read(floorMs),
      baseMs: read(baseMs),
      perTokenMs: read(perTokenMs),
      perTokenContextMs: read(perTokenContextMs),
    },
    decode: { baseMs: read(decode[0]), perSequenceMs: read(decode[1]), perContextTokenMs: read(decode[2]) },
    stepOverheadMs: vidur ? OLD_STEP_OVERHEAD_MS : STEP_OVERHEAD_MS,
    requestOverheadMs: REQUEST_OVERHEAD_MS,
    kvCapacityTokens: read(kvCapacityTokens),
    defaults: { maxNumSeqs: LARGEST_FITTED_BATCH, maxNumBatchedTokens: defaultBatchTokens(id) },
  }
}

function read(value: number | undefined): number {
  return finite('a number of the profile table', value ?? Number.NaN)
}

/** vLLM's own default of `max_num_batched_tokens` for an API server, by memory of the GPU (vLLM 0.32). */
function defaultBatchTokens(id: string): Tokens {
  if (id.includes('/B200')) return 16_384
  return id.includes('/H100') || id.includes('/H200') ? 8192 : 2048
}
