/** Replays a log under configurations and sets what came of it beside what happened. */
import { type Config, classFor, type Mode } from '../config/config.ts'
import type { Ms } from '../core/units.ts'
import { Answers } from '../replay/answers.ts'
import { arrivals, isReplayable, numberOf, type Placing } from '../replay/arrivals.ts'
import { type Figures, figuresOf, type VerdictChange, verdictChanges } from '../replay/comparison.ts'
import { Endings, judgedAnew, loggedEndings } from '../replay/endings.ts'
import type { LoggedRequest } from '../replay/logged-request.ts'
import { SharedPrefixes } from '../replay/shared-prefixes.ts'
import { simulate } from '../sim/run.ts'
import { gateSettings, rolesFor } from './gate-parts.ts'
import { enginesFor, fleetFor, type ModelEngines, type PerModel, priorsFor } from './replay-engines.ts'
import { placingIn, promiseIn } from './replay-place.ts'

export interface ReplayOptions {
  /** In order of arrival. */
  readonly requests: readonly LoggedRequest[]
  readonly now: Config
  readonly was?: Config
  /** In place of the mode of `now`. */
  readonly mode?: Mode
  readonly profiles: readonly PerModel<string>[]
  readonly replicas: readonly PerModel<number>[]
  /** Not counted at the start; default: a sixth of the log, a minute at most. */
  readonly warmUpMs?: Ms
  readonly seed: number
  readonly onRun: (name: 'now' | 'was') => void
}

/** What happened, and what would have, to the requests of one class. */
export interface ReplayedGroup {
  readonly model: string
  readonly class: string
  readonly logged: Figures
  /** As logged, by the promises of the new file; only where that changes a verdict. */
  readonly loggedByNewPromises?: Figures
  readonly was?: Figures
  readonly now: Figures
}

export interface Side {
  readonly digest: string
  readonly mode: Mode
  readonly instances: number
  readonly replicas: Readonly<Record<string, number>>
}

/** Requests that were not replayed. */
export interface LeftOut {
  readonly notGenerations: number
  readonly clientErrors: number
  readonly noPlace: number
}

export interface Replay {
  readonly requests: number
  /** Of those, the ones after the warm-up: all figures are of them. */
  readonly counted: number
  readonly fromUnixMs: Ms
  readonly toUnixMs: Ms
  readonly warmUpMs: Ms
  readonly leftOut: LeftOut
  /** Retries that clients made of refused requests; they are replayed as they came. */
  readonly retries: number
  readonly engines: readonly ModelEngines[]
  readonly now: Side
  readonly was?: Side
  readonly total: Omit<ReplayedGroup, 'model' | 'class'>
  readonly groups: readonly ReplayedGroup[]
  /** From the simulation of the old file where there is one, else from the log, to that of the new one. */
  readonly changes: readonly VerdictChange[]
}

const WARM_SHARE = 1 / 6
const LONGEST_WARM_UP_MS: Ms = 60_000

/** Throws a RangeError that says what to do when the log can't be replayed under the files. */
export function replay(options: ReplayOptions): Replay {
  const { requests, was, seed } = options
  const now: Config = { ...options.now, mode: options.mode ?? options.now.mode }
  const placing = placingIn(now, was)
  const ofModel = (model: string) => requests.filter((request) => placing(request)?.model === model)
  const engines = enginesFor(now.models, ofModel, options.profiles)
  if (engines.length === 0) throw new RangeError(noModel(requests, now))
  const shared = { requests, engines, replicas: options.replicas, seed }
  const runs: Runs = {
    logged: loggedEndings(requests),
    anew: judgedAnew(requests, promiseIn(now, placing)),
    ...(was === undefined
      ? {}
      : { was: ranUnder(was, placingIn(was, undefined), shared, () => options.onRun('was')) }),
    now: ranUnder(now, placing, shared, () => options.onRun('now')),
  }
  const fromUnixMs = requests[0]?.arrivedAtMs ?? 0
  const toUnixMs = requests.at(-1)?.arrivedAtMs ?? 0
  const spanMs = toUnixMs - fromUnixMs
  const warmUpMs = options.warmUpMs ?? Math.min(LONGEST_WARM_UP_MS, spanMs * WARM_SHARE)
  const counted = countedNumbers(requests, placing, fromUnixMs + warmUpMs)
  const judgedMs = Math.max(1, spanMs - warmUpMs)
  return {
    requests: requests.length,
    counted: counted.length,
    fromUnixMs,
    toUnixMs,
    warmUpMs,
    leftOut: leftOutOf(requests, placing),
    retries: counted.filter((number) => (requests[number]?.retryCount ?? 0) > 0).length,
    engines,
    now: sideOf(now, shared),
    ...(was === undefined ? {} : { was: sideOf(was, shared) }),
    total: compared(counted, runs, judgedMs),
    groups: groupsOf(requests, counted, placing).map(({ numbers, ...name }) => ({
      ...name,
      ...compared(numbers, runs, judgedMs),
    })),
    changes: verdictChanges(counted, runs.was ?? runs.logged, runs.now),
  }
}

interface Runs {
  readonly logged: Endings
  readonly anew: Endings
  readonly was?: Endings
  readonly now: Endings
}

interface Shared {
  readonly requests: readonly LoggedRequest[]
  readonly engines: readonly ModelEngines[]
  readonly replicas: readonly PerModel<number>[]
  readonly seed: number
}

function ranUnder(config: Config, placing: Placing, shared: Shared, onRun: () => void): Endings {
  onRun()
  const { requests, engines, seed } = shared
  const endings = new Endings(requests.length)
  simulate({
    replicas: fleetOf(config, shared),
    requests: arrivals({
      requests,
      placing,
      answers: new Answers(requests),
      prefixes: new SharedPrefixes(requests),
    }),
    createScheduler: () => rolesFor(config, undefined, () => priorsFor(engines)).scheduler,
    classFor: (className, model) => classFor(config, className, model),
    settings: gateSettings(config),
    instances: config.instances,
    seed,
    onOutcome: ({ settlement }) =>
      endings.set(numberOf(settlement.requestId), { ...settlement, verdict: settlement.verdict.kind }),
  })
  return endings
}

function fleetOf(config: Config, { requests, engines, replicas }: Shared) {
  return fleetFor(config, engines, replicas, (model) => seenReplicas(requests, model))
}

function seenReplicas(requests: readonly LoggedRequest[], model: string): number {
  const names = new Set<string>()
  for (const request of requests)
    if (request.model === model && request.replica !== undefined) names.add(request.replica)
  return names.size
}

function sideOf(config: Config, shared: Shared): Side {
  const replicas = new Map<string, number>()
  for (const { pool = '' } of fleetOf(config, shared)) replicas.set(pool, (replicas.get(pool) ?? 0) + 1)
  const { digest, mode, instances } = config
  return { digest, mode, instances, replicas: Object.fromEntries(replicas) }
}

function countedNumbers(
  requests: readonly LoggedRequest[],
  placing: Placing,
  fromUnixMs: Ms,
): readonly number[] {
  return [...requests.keys()].filter((number) => {
    const request = requests[number]
    if (request === undefined || request.arrivedAtMs < fromUnixMs) return false
    return isReplayable(request) && placing(request) !== undefined
  })
}

function groupsOf(requests: readonly LoggedRequest[], counted: readonly number[], placing: Placing) {
  const groups = new Map<
    string,
    { readonly model: string; readonly class: string; readonly numbers: number[] }
  >()
  for (const number of counted) {
    const request = requests[number]
    const place = request === undefined ? undefined : placing(request)
    if (place === undefined) continue
    const key = `${place.model}\n${place.className}`
    const group = groups.get(key) ?? { model: place.model, class: place.className, numbers: [] }
    group.numbers.push(number)
    groups.set(key, group)
  }
  return [...groups].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, group]) => group)
}

function compared(numbers: readonly number[], runs: Runs, spanMs: Ms): Replay['total'] {
  const otherwise = numbers.some((number) => runs.anew.verdict(number) !== runs.logged.verdict(number))
  return {
    logged: figuresOf(numbers, runs.logged, spanMs),
    ...(otherwise ? { loggedByNewPromises: figuresOf(numbers, runs.anew, spanMs) } : {}),
    ...(runs.was === undefined ? {} : { was: figuresOf(numbers, runs.was, spanMs) }),
    now: figuresOf(numbers, runs.now, spanMs),
  }
}

function leftOutOf(requests: readonly LoggedRequest[], placing: Placing): LeftOut {
  let [notGenerations, clientErrors, noPlace] = [0, 0, 0]
  for (const request of requests) {
    if (request.kind !== 'generate') notGenerations++
    else if (!isReplayable(request)) clientErrors++
    else if (placing(request) === undefined) noPlace++
  }
  return { notGenerations, clientErrors, noPlace }
}

function noModel(requests: readonly LoggedRequest[], { models }: Config): string {
  const asked = [...new Set(requests.map(({ model }) => model))].join(', ')
  return `the log is of ${asked}, and the file has only ${models.map(({ name }) => name).join(', ')}; give a file with those models`
}

/** Recent requests as they were run, in shadow mode, and enforced; undefined when they say too little of their engines. */
export function replayShadow({
  requests,
  config,
}: {
  readonly requests: readonly LoggedRequest[]
  readonly config: Config
}): Replay | undefined {
  try {
    return replay({
      requests,
      now: config,
      mode: 'enforce',
      was: config,
      profiles: [],
      replicas: [],
      seed: 1,
      onRun: () => {},
    })
  } catch (cause) {
    if (cause instanceof RangeError) return undefined
    throw cause
  }
}
