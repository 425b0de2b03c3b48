/** The engines that a log is replayed on: costs by a named profile, else as the log shows them, else as the file says. */
import type { Config, ModelConfig } from '../config/config.ts'
import type { EngineLimits } from '../core/replica.ts'
import type { StepPrior } from '../estimate/step-model.ts'
import { type EngineFit, fitEngine } from '../replay/engine-fit.ts'
import { fittedProfile } from '../replay/fitted-profile.ts'
import type { LoggedRequest } from '../replay/logged-request.ts'
import type { ReplicaEngineOptions } from '../sim/engine-types.ts'
import { type EngineProfile, profile, profileIds } from '../sim/profiles.ts'
import type { SimReplica } from '../sim/run-types.ts'
import { priorLike } from './gate-parts.ts'
import { DEFAULT_PROFILE, limitsOf, STEP_JITTER_RATIO } from './simulate-fleet.ts'

/** Where step costs come from. */
export type CostSource = 'option' | 'log' | 'file'

export interface ModelEngines {
  readonly model: string
  readonly source: CostSource
  readonly profile: EngineProfile
  readonly fit?: EngineFit
  /** Limits that neither the file's `engine_args` nor a profile of its own tell, as they are assumed. */
  readonly assumed: Partial<EngineLimits>
}

/** A value for one model, or (no model) for all. */
export interface PerModel<Value> {
  readonly model?: string
  readonly value: Value
}

function valueFor<Value>(given: readonly PerModel<Value>[], model: string): Value | undefined {
  return (given.find((each) => each.model === model) ?? given.find((each) => each.model === undefined))?.value
}

/** Throws a RangeError that says what to do when nothing tells how fast a model's engines are. */
export function enginesFor(
  models: readonly ModelConfig[],
  requestsOf: (model: string) => readonly LoggedRequest[],
  profiles: readonly PerModel<string>[],
): readonly ModelEngines[] {
  return models.flatMap((model) => {
    const requests = requestsOf(model.name)
    return requests.length === 0 ? [] : [engineFor(model, requests, valueFor(profiles, model.name))]
  })
}

function engineFor(
  model: ModelConfig,
  requests: readonly LoggedRequest[],
  asked: string | undefined,
): ModelEngines {
  const { name } = model
  if (asked !== undefined) return { model: name, source: 'option', profile: profile(asked), assumed: {} }
  const known =
    model.profile !== undefined && profileIds().includes(model.profile) ? model.profile : undefined
  const like = profile(known ?? DEFAULT_PROFILE)
  const chunkTokens = model.engineArgs.maxNumBatchedTokens ?? like.defaults.maxNumBatchedTokens
  const assumed = known === undefined ? missing(model.engineArgs, like) : {}
  const fit = fitEngine(requests, priorLike(like), chunkTokens)
  if (fit !== undefined)
    return { model: name, source: 'log', profile: fittedProfile(name, fit, like), fit, assumed }
  if (known !== undefined) return { model: name, source: 'file', profile: like, assumed: {} }
  throw new RangeError(
    `the log holds too few streamed answers of ${name} to tell how fast its engines are; name a --profile (\`sluice engine --list-profiles\`)`,
  )
}

function missing(known: EngineLimits, { defaults, kvCapacityTokens }: EngineProfile): Partial<EngineLimits> {
  return {
    ...(known.maxNumSeqs === undefined ? { maxNumSeqs: defaults.maxNumSeqs } : {}),
    ...(known.maxNumBatchedTokens === undefined ? { maxNumBatchedTokens: defaults.maxNumBatchedTokens } : {}),
    ...(known.kvCapacityTokens === undefined ? { kvCapacityTokens } : {}),
  }
}

/** The simulated fleet of a configuration. A name in DNS stands for as many replicas as the log has seen. */
export function fleetFor(
  config: Config,
  engines: readonly ModelEngines[],
  counts: readonly PerModel<number>[],
  seenReplicas: (model: string) => number,
): readonly SimReplica[] {
  return engines.flatMap(({ model: name, profile: costs }) => {
    const model = config.models.find((candidate) => candidate.name === name)
    if (model === undefined) return []
    const count = valueFor(counts, name) ?? replicasOf(model, seenReplicas(name))
    return Array.from({ length: count }, () => ({ pool: name, engine: engineOf(costs, model) }))
  })
}

function replicasOf(model: ModelConfig, seen: number): number {
  const named = model.replicas.filter(({ kind }) => kind === 'url').length
  return named === model.replicas.length ? named : Math.max(named + 1, seen)
}

function engineOf(costs: EngineProfile, model: ModelConfig): ReplicaEngineOptions {
  return {
    profile: costs,
    jitterRatio: STEP_JITTER_RATIO,
    policy: model.priorityScheduling ? 'priority' : 'fcfs',
    ...limitsOf(model.engineArgs),
  }
}

/** What a scheduler may believe before it has seen anything: the engines have run for long when a log begins. */
export function priorsFor(engines: readonly ModelEngines[]): Readonly<Record<string, StepPrior>> {
  return Object.fromEntries(engines.map(({ profile: costs }) => [costs.id, priorLike(costs)]))
}
