/** Seeded request streams of the five workloads that people run in front of LLM engines. Knows no engine. */
import type { Ms, Ratio, Tokens } from '../core/units.ts'
import { mapToRates, type RateSegment } from './rates.ts'
import { Rng } from './rng.ts'

/** A log-normal length; `sigma` is the deviation of its logarithm. */
export interface LengthLaw {
  readonly meanTokens: Tokens
  readonly sigma: number
}

/** How one workload behaves; its name is the SLO class that it asks for. */
export interface WorkloadClass {
  readonly name: string
  /** Weight in the mix, by count. */
  readonly share: number
  readonly prompt: LengthLaw
  readonly output: LengthLaw
  /** The client's `max_tokens`; outputs are cut there. */
  readonly maxTokens: Tokens
  /** Prompts begin with one of `families` texts of that length; absent: prompts share nothing. */
  readonly shared?: { readonly families: number; readonly tokens: Tokens }
}

/**
 * The five workloads. Mean lengths and mix are the ones this project's studies use. Spreads follow public traces
 * (p90 over p50): Azure 2023 conversations for chat (prompts 2.7, outputs 3.3), Azure 2023 code for autocomplete (3.5
 * and 4.2), SWE-bench agent runs for agent (1.7 and 5.7), arXiv summarization for batch (1.4 and 2.2). Voice turns and
 * the shared texts (system prompts, agent sessions) have no public source and are our own assumption.
 */
export const WORKLOADS: readonly WorkloadClass[] = [
  {
    name: 'chat',
    share: 0.5,
    prompt: { meanTokens: 830, sigma: 0.77 },
    output: { meanTokens: 250, sigma: 0.93 },
    maxTokens: 1024,
    shared: { families: 4, tokens: 256 },
  },
  {
    name: 'voice',
    share: 0.15,
    prompt: { meanTokens: 560, sigma: 0.5 },
    output: { meanTokens: 80, sigma: 0.5 },
    maxTokens: 256,
    shared: { families: 2, tokens: 256 },
  },
  {
    name: 'autocomplete',
    share: 0.2,
    prompt: { meanTokens: 1520, sigma: 0.98 },
    output: { meanTokens: 28, sigma: 1.13 },
    maxTokens: 128,
  },
  {
    name: 'agent',
    share: 0.1,
    prompt: { meanTokens: 4360, sigma: 0.43 },
    output: { meanTokens: 155, sigma: 1.35 },
    maxTokens: 1024,
    shared: { families: 40, tokens: 2048 },
  },
  {
    name: 'batch',
    share: 0.05,
    prompt: { meanTokens: 2920, sigma: 0.24 },
    output: { meanTokens: 375, sigma: 0.62 },
    maxTokens: 1024,
    shared: { families: 1, tokens: 512 },
  },
]

/** Prompts are kept within these bounds, before `lengthRatio`. */
const SHORTEST_PROMPT_TOKENS: Tokens = 16
const LONGEST_PROMPT_TOKENS: Tokens = 16_384

export interface WorkloadOptions {
  readonly seed: number
  /** The offered rate over time; the stream ends with the last segment. */
  readonly segments: readonly RateSegment[]
  /** Coefficient of variation of the gaps at a steady rate: 1 (default) is Poisson, more is gamma bursts. */
  readonly gapCv?: number
  /** Every length times this, for engines too slow for the real ones; default 1. */
  readonly lengthRatio?: Ratio
  readonly classes?: readonly WorkloadClass[]
}

/** One request of the stream. */
export interface WorkloadRequest {
  readonly id: string
  /** After the start of the stream. */
  readonly atMs: Ms
  readonly className: string
  readonly promptTokens: Tokens
  /** What it will generate; no scheduler may see this. */
  readonly outputTokens: Tokens
  readonly maxTokens: Tokens
  /** The prompt's first tokens, common to all requests of the same key. */
  readonly shared?: { readonly key: string; readonly tokens: Tokens }
}

/**
 * The stream, in order of arrival. The n-th request is the same one whatever the rate, so that two loads differ only
 * in how fast it comes. Throws a RangeError for a mix without weight, or options out of range.
 */
export function* generateWorkload(options: WorkloadOptions): Generator<WorkloadRequest, void, undefined> {
  const { classes = WORKLOADS, gapCv = 1, lengthRatio = 1 } = options
  const totalShare = classes.reduce((sum, entry) => sum + entry.share, 0)
  if (!(totalShare > 0))
    throw new RangeError('the workload mix needs at least one class with a share above 0')
  if (!(gapCv > 0)) throw new RangeError(`gapCv must be above 0, got ${gapCv}`)
  if (!(lengthRatio > 0)) throw new RangeError(`lengthRatio must be above 0, got ${lengthRatio}`)
  const root = new Rng(options.seed)
  const gaps = root.fork('gaps')
  const choices = root.fork('choices')
  const lengths = root.fork('lengths')
  const instants = mapToRates(options.segments, () => unitGap(gaps, gapCv))
  let number = 0
  for (const atMs of instants) {
    const entry = choose(classes, choices.uniform() * totalShare)
    yield { id: `w${number++}`, atMs, ...drawRequest(entry, lengthRatio, choices, lengths) }
  }
}

/** Mean prompt and output tokens of one request of the mix. */
export function meanLengths(classes: readonly WorkloadClass[] = WORKLOADS): {
  prompt: Tokens
  output: Tokens
} {
  const totalShare = classes.reduce((sum, entry) => sum + entry.share, 0)
  const mean = (of: (entry: WorkloadClass) => Tokens) =>
    classes.reduce((sum, entry) => sum + entry.share * of(entry), 0) / totalShare
  return {
    prompt: mean((entry) => entry.prompt.meanTokens),
    output: mean((entry) => entry.output.meanTokens),
  }
}

function drawRequest(
  entry: WorkloadClass,
  lengthRatio: Ratio,
  choices: Rng,
  lengths: Rng,
): Omit<WorkloadRequest, 'id' | 'atMs'> {
  const scale = (tokens: Tokens) => Math.max(1, Math.round(tokens * lengthRatio))
  const prompt = lengths.logNormal(entry.prompt.meanTokens, entry.prompt.sigma)
  const output = lengths.logNormal(entry.output.meanTokens, entry.output.sigma)
  const promptTokens = scale(Math.min(Math.max(prompt, SHORTEST_PROMPT_TOKENS), LONGEST_PROMPT_TOKENS))
  const family = choices.uniform()
  const request = {
    className: entry.name,
    promptTokens,
    outputTokens: scale(Math.min(output, entry.maxTokens)),
    maxTokens: scale(entry.maxTokens),
  }
  if (entry.shared === undefined) return request
  const key = `${entry.name}-${Math.floor(family * entry.shared.families)}`
  return { ...request, shared: { key, tokens: Math.min(scale(entry.shared.tokens), promptTokens) } }
}

function choose(classes: readonly WorkloadClass[], point: number): WorkloadClass {
  let rest = point
  let chosen: WorkloadClass | undefined
  for (const entry of classes) {
    chosen = entry
    rest -= entry.share
    if (rest < 0) break
  }
  if (chosen === undefined) throw new RangeError('the workload mix is empty')
  return chosen
}

/** A gap of mean 1: exponential, or gamma with that coefficient of variation. */
function unitGap(rng: Rng, cv: number): number {
  return cv === 1 ? rng.exponential(1) : rng.gamma(1 / cv ** 2, cv ** 2)
}
