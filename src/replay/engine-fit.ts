/** Learns from a log what a step of its engines costs: how long answers took, under the load that they met. */
import type { Ms, Tokens } from '../core/units.ts'
import type { StepPrior } from '../estimate/step-model.ts'
import { dot, fitParameters, type Observation } from './least-squares.ts'
import type { LoggedRequest } from './logged-request.ts'
import { chunksOf, Occupancy, stayOf } from './occupancy.ts'

/** What was learnt, in the terms of the step model. */
export interface EngineFit extends Omit<StepPrior, 'uncertaintyRatio'> {
  /** Answers whose pace was read, and first tokens that waited for no earlier prompt. */
  readonly paces: number
  readonly firstTokens: number
  /** How far the fit is off in the median: of the time of an answer after its first token, and of that first token. */
  readonly paceErrorRatio: number
  readonly firstTokenErrorRatio: number
}

/** Fewer say too little. */
const FEWEST_OBSERVATIONS = 30
/** A shorter answer says little of a pace. */
const FEWEST_TOKENS: Tokens = 8
/** First tokens closer together than this left the engine in one step. */
const SAME_STEP_MS: Ms = 1
/** What is waited for of the step that runs when a request comes, in steps. */
const HALF_STEP = 0.5
/** Relative noise of what was seen, by kind, and of its ends in ms; as live learning has it. */
const PACE_NOISE_RATIO = 0.1
const FIRST_TOKEN_NOISE_RATIO = 0.15
const CLOCK_NOISE_MS: Ms = 1
/** The first guess is scaled to what was seen; each parameter may well be as far off as it is large. */
const GUESS_SIGMA_RATIO = 1
const LEAST_SIGMA = 0.05
/** Only a chunk may cost less than nothing: its step may be cheaper than the decode step that it takes the place of. */
const FLOORS = [0, 0, 0, 0, -1e6, 0, 0]

interface Seen extends Observation {
  readonly kind: 'pace' | 'firstToken'
}

/**
 * Undefined when the log says too little. `requests` are those of one model; `guess` gives the shape where they say
 * nothing, e.g. how a batch slows steps down that was never larger than one.
 */
export function fitEngine(
  requests: readonly LoggedRequest[],
  guess: StepPrior,
  chunkTokens: Tokens,
): EngineFit | undefined {
  const seen = [...byReplica(requests).values()].flatMap((own) => observationsOf(own, chunkTokens))
  const paces = seen.filter(({ kind }) => kind === 'pace')
  const firstTokens = seen.filter(({ kind }) => kind === 'firstToken')
  if (paces.length < FEWEST_OBSERVATIONS || firstTokens.length < FEWEST_OBSERVATIONS) return undefined
  const start = scaled(parametersOf(guess), paces, firstTokens)
  const sigmas = start.map((value) => Math.max(LEAST_SIGMA, Math.abs(value) * GUESS_SIGMA_RATIO))
  const found = fitParameters(seen, start, sigmas, FLOORS)
  const [
    baseMs = 0,
    perSequenceMs = 0,
    per1kContextMs = 0,
    requestOverheadMs = 0,
    perChunkMs = 0,
    per1kMs = 0,
    per1mPairsMs = 0,
  ] = found
  return {
    baseMs,
    perSequenceMs,
    perContextTokenMs: per1kContextMs / 1000,
    requestOverheadMs,
    perChunkMs,
    perPrefillTokenMs: per1kMs / 1000,
    perPairMs: per1mPairsMs / 1e6,
    paces: paces.length,
    firstTokens: firstTokens.length,
    paceErrorRatio: medianError(paces, found),
    firstTokenErrorRatio: medianError(firstTokens, found),
  }
}

/** In the order of an observation's `x`; context and prefill count in thousands, pairs in millions. */
function parametersOf(prior: StepPrior): readonly number[] {
  return [
    prior.baseMs,
    prior.perSequenceMs,
    prior.perContextTokenMs * 1000,
    prior.requestOverheadMs,
    prior.perChunkMs,
    prior.perPrefillTokenMs * 1000,
    prior.perPairMs * 1e6,
  ]
}

function byReplica(requests: readonly LoggedRequest[]): ReadonlyMap<string, LoggedRequest[]> {
  const replicas = new Map<string, LoggedRequest[]>()
  for (const request of requests) {
    const { replica } = request
    if (replica === undefined) continue
    const own = replicas.get(replica)
    if (own === undefined) replicas.set(replica, [request])
    else own.push(request)
  }
  return replicas
}

function observationsOf(requests: readonly LoggedRequest[], chunkTokens: Tokens): Seen[] {
  const occupancy = new Occupancy(requests, chunkTokens)
  return requests.flatMap((request) => {
    if (!request.streamed || request.kind !== 'generate' || request.cause === 'slow_reader') return []
    return [...paceOf(request, occupancy), ...firstTokenOf(request, occupancy, chunkTokens)]
  })
}

/** From first to last token: decode steps with what else decoded, and the prompts that were computed between them. */
function paceOf(request: LoggedRequest, occupancy: Occupancy): Seen[] {
  const { arrivedAtMs, ttftMs, tpotMs, outputTokens, sequences } = request
  const steps = outputTokens / sequences - 1
  if (ttftMs === undefined || tpotMs === undefined || steps + 1 < FEWEST_TOKENS) return []
  const y = tpotMs * steps
  const fromMs = arrivedAtMs + ttftMs
  const load = occupancy.load(fromMs, fromMs + y)
  const prefilled = occupancy.prefilled(fromMs, fromMs + y)
  const x = [
    steps,
    steps * load.sequences,
    (steps * load.contextTokens) / 1000,
    0,
    prefilled.chunks,
    prefilled.tokens / 1000,
    prefilled.pairs / 1e6,
  ]
  return y > 0 ? [{ kind: 'pace', x, y, sigma: PACE_NOISE_RATIO * y + CLOCK_NOISE_MS }] : []
}

/**
 * From dispatch to first token, where no prompt was under way when it came: its own, those that came after it and were
 * computed with it, and what decoded beside them.
 */
function firstTokenOf(request: LoggedRequest, occupancy: Occupancy, chunkTokens: Tokens): Seen[] {
  const stay = stayOf(request)
  if (stay === undefined || request.ttftMs === undefined) return []
  const { fromMs, firstTokenMs } = stay
  const y = firstTokenMs - fromMs
  if (!(y > 0) || occupancy.prefillingAt(fromMs) > 1) return []
  const load = occupancy.load(fromMs, firstTokenMs)
  const { tokens, pairs } = occupancy.prefilled(fromMs, firstTokenMs + SAME_STEP_MS)
  const chunks = chunksOf(tokens, chunkTokens)
  const steps = chunks + (load.sequences > 0 ? HALF_STEP : 0)
  const decode = [steps, steps * load.sequences, (steps * load.contextTokens) / 1000]
  const x = [...decode, 1, chunks, tokens / 1000, pairs / 1e6]
  return [{ kind: 'firstToken', x, y, sigma: FIRST_TOKEN_NOISE_RATIO * y + CLOCK_NOISE_MS }]
}

/** The guess with its decode part and its prefill part each as slow as the log is. */
function scaled(
  guess: readonly number[],
  paces: readonly Seen[],
  firstTokens: readonly Seen[],
): readonly number[] {
  const ratio = (seen: readonly Seen[]) =>
    median(seen.map(({ x, y }) => y / Math.max(CLOCK_NOISE_MS, dot(guess, x))))
  const [decode, prefill] = [ratio(paces), ratio(firstTokens)]
  return guess.map((value, at) => value * (at < 3 ? decode : prefill))
}

function medianError(seen: readonly Seen[], parameters: readonly number[]): number {
  return median(seen.map(({ x, y }) => Math.abs(dot(parameters, x) / y - 1)))
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.floor(sorted.length / 2)] ?? 0
}
