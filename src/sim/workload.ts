/** Turns a workload into its seeded stream of requests. Knows no engine. */
import type { Ms, Ratio, Tokens } from '../core/units.ts'
import { type Arrivals, rateSegments } from './arrivals.ts'
import { drawClient } from './clients.ts'
import { drawTokens, meanTokensOf } from './lengths.ts'
import { mapToRates, type RateSegment, segmentsMs } from './rates.ts'
import { Rng } from './rng.ts'
import { meanEarlierTurns, withTurns } from './sessions.ts'
import type { UnsentRequest, Workload, WorkloadClass, WorkloadRequest } from './workload-types.ts'
import { WORKLOADS } from './workloads.ts'

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

export interface StreamOptions {
  readonly workload: Workload
  readonly seed: number
  /** Requests a second, mean over the stream. Later turns of sessions are counted as if nobody ever left. */
  readonly ratePerSec: number
  /** The last request that is not a later turn comes before that. */
  readonly durationMs: Ms
  /** In place of the workload's own. */
  readonly arrivals?: Arrivals
  readonly lengthRatio?: Ratio
}

/** A stretch of time with its mix. */
interface Stretch {
  readonly segments: readonly RateSegment[]
  readonly classes: readonly WorkloadClass[]
}

/**
 * The stream of one mix, in order of arrival. The n-th request is the same one whatever the rate, so that two loads
 * differ only in how fast it comes. Throws a RangeError for a mix without weight, or options out of range.
 */
export function generateWorkload(options: WorkloadOptions): Generator<WorkloadRequest, void, undefined> {
  const { seed, segments, classes = WORKLOADS, gapCv = 1, lengthRatio = 1 } = options
  return drawStream(seed, [{ segments, classes }], gapCv, lengthRatio)
}

/** The stream of a workload at that rate, likewise; in a workload that shifts, the rate decides when. */
export function workloadStream(options: StreamOptions): Generator<WorkloadRequest, void, undefined> {
  const { workload, seed, ratePerSec, durationMs, lengthRatio = 1 } = options
  const { gapCv = 1, rhythm } = options.arrivals ?? workload.arrivals ?? {}
  const { phases } = workload
  const totalShare = phases.reduce((sum, { timeShare = 1 }) => sum + timeShare, 0)
  const rateOf = ({ timeShare = 1, rateRatio = 1 }) => (timeShare / totalShare) * rateRatio
  const meanRatio = phases.reduce((sum, phase) => sum + rateOf(phase), 0)
  const stretches: Stretch[] = []
  let startMs = 0
  for (const { timeShare = 1, rateRatio = 1, classes } of phases) {
    const endMs = startMs + (timeShare / totalShare) * durationMs
    const perSec = (ratePerSec * rateRatio) / meanRatio
    stretches.push({ segments: rateSegments(rhythm, perSec, startMs, endMs), classes })
    startMs = endMs
  }
  return drawStream(seed, stretches, gapCv, lengthRatio)
}

/** The same workload with each class changed. */
export function mapClasses(workload: Workload, change: (entry: WorkloadClass) => WorkloadClass): Workload {
  return {
    ...workload,
    phases: workload.phases.map((phase) => ({ ...phase, classes: phase.classes.map(change) })),
  }
}

/** Mean prompt and output tokens of one request of the mix. */
export function meanLengths(classes: readonly WorkloadClass[] = WORKLOADS): {
  prompt: Tokens
  output: Tokens
} {
  const totalShare = totalShareOf(classes)
  const mean = (of: (entry: WorkloadClass) => Tokens) =>
    classes.reduce((sum, entry) => sum + entry.share * of(entry), 0) / totalShare
  return {
    prompt: mean((entry) => meanPromptTokens(entry)),
    output: mean((entry) => meanTokensOf(entry.output)),
  }
}

function meanPromptTokens({ prompt, output, session }: WorkloadClass): Tokens {
  if (session === undefined) return meanTokensOf(prompt)
  const grownTokens = meanTokensOf(output) + meanTokensOf(session.added)
  return meanTokensOf(prompt) + meanEarlierTurns(session) * grownTokens
}

function* drawStream(
  seed: number,
  stretches: readonly Stretch[],
  gapCv: number,
  lengthRatio: Ratio,
): Generator<WorkloadRequest, void, undefined> {
  if (!(gapCv > 0)) throw new RangeError(`gapCv must be above 0, got ${gapCv}`)
  if (!(lengthRatio > 0)) throw new RangeError(`lengthRatio must be above 0, got ${lengthRatio}`)
  const root = new Rng(seed)
  const gaps = root.fork('gaps')
  const draw = requestDrawer(root, lengthRatio, 'w')
  const ends = stretchEnds(stretches)
  const underWay = sessionsUnderWay(root, stretches[0], lengthRatio)
  const instants = mapToRates(stretches.flatMap(openings), () => unitGap(gaps, gapCv))
  let at = 0
  let resumed = 0
  for (const atMs of instants) {
    while (at < ends.length - 1 && atMs >= (ends[at] ?? 0)) at++
    for (let next = underWay[resumed]; next !== undefined && next.atMs <= atMs; next = underWay[resumed]) {
      yield next
      resumed++
    }
    yield { atMs, ...draw(stretches[at]?.classes ?? []) }
  }
}

/** Sessions older than that many times their mean length are left out of those under way. */
const OLDEST_SESSION_RATIO = 4

/**
 * The next turns of sessions that began before the stream, in order, so that its rate is what it should be from the
 * first second on. They are drawn as if answers took no time.
 */
function sessionsUnderWay(
  root: Rng,
  stretch: Stretch | undefined,
  lengthRatio: Ratio,
): readonly WorkloadRequest[] {
  const classes = stretch?.classes.filter(({ session }) => session !== undefined) ?? []
  const [first] = stretch?.segments ?? []
  if (stretch === undefined || first === undefined || classes.length === 0) return []
  const historyMs =
    OLDEST_SESSION_RATIO *
    Math.max(...classes.map(({ session }) => (session?.meanTurns ?? 0) * (session?.think.meanMs ?? 0)))
  const share = totalShareOf(classes) / totalShareOf(stretch.classes)
  const segments = [{ durationMs: historyMs, fromPerSec: meanPerSec(stretch.segments) * share }]
  const draw = requestDrawer(root.fork('under way'), lengthRatio, 'u')
  const gaps = root.fork('earlier gaps')
  const resumed: WorkloadRequest[] = []
  for (const beganMs of mapToRates(openings({ segments, classes }), () => unitGap(gaps, 1))) {
    let atMs = beganMs - historyMs
    let turn: UnsentRequest | undefined = draw(classes)
    while (turn !== undefined && atMs < 0) {
      atMs += turn.next?.thinkMs ?? 0
      turn = turn.next?.request
    }
    if (turn !== undefined) resumed.push({ ...turn, atMs })
  }
  return resumed.sort((a, b) => a.atMs - b.atMs)
}

function meanPerSec(segments: readonly RateSegment[]): number {
  const expected = segments.reduce((sum, { durationMs, fromPerSec, toPerSec = fromPerSec }) => {
    return sum + ((fromPerSec + toPerSec) / 2) * durationMs
  }, 0)
  return expected / Math.max(segmentsMs(segments), 1)
}

function stretchEnds(stretches: readonly Stretch[]): readonly Ms[] {
  let endMs = 0
  return stretches.map(({ segments }) => {
    endMs += segmentsMs(segments)
    return endMs
  })
}

/** The rate at which sessions and single requests begin, when requests come at the rate of the segments. */
function openings({ segments, classes }: Stretch): readonly RateSegment[] {
  const perRequest =
    classes.reduce((sum, { share, session }) => sum + share / (session?.meanTurns ?? 1), 0) /
    totalShareOf(classes)
  return segments.map(({ durationMs, fromPerSec, toPerSec = fromPerSec }) => ({
    durationMs,
    fromPerSec: fromPerSec * perRequest,
    toPerSec: toPerSec * perRequest,
  }))
}

function totalShareOf(classes: readonly WorkloadClass[]): number {
  const totalShare = classes.reduce((sum, entry) => sum + entry.share, 0)
  if (totalShare > 0) return totalShare
  throw new RangeError('the workload mix needs at least one class with a share above 0')
}

/** Draws one request after the other; what only some classes have is drawn from streams of its own. */
function requestDrawer(root: Rng, lengthRatio: Ratio, prefix: string) {
  const choices = root.fork('choices')
  const lengths = root.fork('lengths')
  let number = 0
  return (classes: readonly WorkloadClass[]): UnsentRequest => {
    const id = `${prefix}${number++}`
    const entry = choose(classes, choices.uniform())
    const drawn = { id, ...drawRequest(entry, lengthRatio, choices, lengths) }
    const request =
      entry.client === undefined
        ? drawn
        : { ...drawn, ...drawClient(entry.client, root.fork(`client ${id}`)) }
    if (entry.session === undefined) return request
    const longestTokens = Math.round((entry.longestPromptTokens ?? LONGEST_PROMPT_TOKENS) * lengthRatio)
    return withTurns(request, entry, { lengthRatio, longestTokens, rng: root.fork(`session ${id}`) })
  }
}

function drawRequest(
  entry: WorkloadClass,
  lengthRatio: Ratio,
  choices: Rng,
  lengths: Rng,
): Omit<UnsentRequest, 'id'> {
  const { longestPromptTokens = LONGEST_PROMPT_TOKENS } = entry
  const scale = (tokens: Tokens) => Math.max(1, Math.round(tokens * lengthRatio))
  const prompt = drawTokens(entry.prompt, lengths)
  const output = drawTokens(entry.output, lengths)
  const promptTokens = scale(Math.min(Math.max(prompt, SHORTEST_PROMPT_TOKENS), longestPromptTokens))
  const family = choices.uniform()
  const request = {
    className: entry.name,
    promptTokens,
    outputTokens: scale(Math.min(output, entry.maxTokens)),
    maxTokens: scale(entry.maxTokens),
    ...(entry.priority === undefined ? {} : { priority: entry.priority }),
  }
  if (entry.shared === undefined) return request
  const key = `${entry.name}-${Math.floor(family * entry.shared.families)}`
  return { ...request, shared: { key, tokens: Math.min(scale(entry.shared.tokens), promptTokens) } }
}

/** The class whose stretch of the shares holds that point of [0, 1); openings of sessions are rarer than their turns. */
function choose(classes: readonly WorkloadClass[], point: Ratio): WorkloadClass {
  const weightOf = ({ share, session }: WorkloadClass) => share / (session?.meanTurns ?? 1)
  let rest = point * classes.reduce((sum, entry) => sum + weightOf(entry), 0)
  let chosen: WorkloadClass | undefined
  for (const entry of classes) {
    chosen = entry
    rest -= weightOf(entry)
    if (rest < 0) break
  }
  if (chosen === undefined) throw new RangeError('the workload mix is empty')
  return chosen
}

/** A gap of mean 1: exponential, or gamma with that coefficient of variation. */
function unitGap(rng: Rng, cv: number): number {
  return cv === 1 ? rng.exponential(1) : rng.gamma(1 / cv ** 2, cv ** 2)
}
