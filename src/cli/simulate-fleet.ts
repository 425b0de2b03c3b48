/** The simulated fleet and its promises: from flags, else from a configuration file, else the defaults. */
import { type Config, classFor, type ModelConfig } from '../config/config.ts'
import type { EngineLimits } from '../core/replica.ts'
import type { SloClass } from '../core/request.ts'
import type { Tokens } from '../core/units.ts'
import { WORKLOAD_CLASSES } from '../sim/classes.ts'
import { DEFAULT_BLOCK_TOKENS } from '../sim/engine-limits.ts'
import type { Disaggregation, EngineOptions, ReplicaEngineOptions, Speculation } from '../sim/engine-types.ts'
import { profile } from '../sim/profiles.ts'
import { configFrom } from './load-options.ts'
import type { Terminal } from './terminal.ts'

export interface FleetFlags {
  readonly config?: string
  readonly model?: string
  readonly profile?: string
  readonly replicas?: number
  readonly maxNumSeqs?: number
  readonly maxNumBatchedTokens?: Tokens
  readonly kvTokens?: Tokens
  readonly chunkedPrefill: boolean
  readonly prefixCaching: boolean
  readonly asyncScheduling: boolean
  readonly prioritized: boolean
  readonly speculative?: Speculation
  readonly disaggregated?: Disaggregation
}

export interface Fleet {
  readonly profileId: string
  readonly engines: readonly ReplicaEngineOptions[]
  readonly classes: Readonly<Record<string, SloClass>>
}

/** Deviation of step times; no real engine is exact. */
export const STEP_JITTER_RATIO = 0.05
export const DEFAULT_PROFILE = 'Llama-3.1-8B/H100-80G-SXM/tp1'
const DEFAULT_REPLICAS = 4

/** Throws a RangeError for a configuration or a profile that can't be had. */
export async function fleetOf(flags: FleetFlags, terminal: Terminal): Promise<Fleet> {
  const config = flags.config === undefined ? undefined : await configFrom('--config', flags.config, terminal)
  const model = config === undefined ? undefined : modelOf(config, flags.model)
  const profileId = flags.profile ?? model?.profile ?? DEFAULT_PROFILE
  if (model !== undefined && (flags.profile ?? model.profile) === undefined)
    terminal.err(
      `the file names no profile for ${model.name}: ${profileId} is taken; --profile takes another\n`,
    )
  const replicas = flags.replicas ?? model?.replicas.length ?? DEFAULT_REPLICAS
  const engine = engineOf(flags, profileId, model)
  return {
    profileId,
    engines: Array.from({ length: replicas }, () => engine),
    classes: config === undefined || model === undefined ? WORKLOAD_CLASSES : classesOf(config, model.name),
  }
}

function modelOf(config: Config, name: string | undefined): ModelConfig {
  const found = name === undefined ? config.models[0] : config.models.find((model) => model.name === name)
  if (found !== undefined) return found
  throw new RangeError(`--model "${name}" is none of ${config.models.map((model) => model.name).join(', ')}`)
}

function classesOf(config: Config, model: string): Readonly<Record<string, SloClass>> {
  const names = Object.keys(config.classes)
  return Object.fromEntries(
    names.flatMap((name) => {
      const slo = classFor(config, name, model)
      return slo === undefined ? [] : [[name, slo]]
    }),
  )
}

function engineOf(
  flags: FleetFlags,
  profileId: string,
  model: ModelConfig | undefined,
): ReplicaEngineOptions {
  const { maxNumSeqs, maxNumBatchedTokens, kvTokens, speculative, disaggregated } = flags
  return {
    profile: profile(profileId),
    jitterRatio: STEP_JITTER_RATIO,
    chunkedPrefill: flags.chunkedPrefill,
    prefixCaching: flags.prefixCaching,
    asyncScheduling: flags.asyncScheduling,
    policy: flags.prioritized ? 'priority' : 'fcfs',
    ...limitsOf(model?.engineArgs ?? {}),
    ...limitsOf({ maxNumSeqs, maxNumBatchedTokens, kvCapacityTokens: kvTokens }),
    ...(speculative === undefined ? {} : { speculative }),
    ...(disaggregated === undefined ? {} : { disaggregated }),
  }
}

type Limits = { readonly [name in keyof EngineLimits]?: EngineLimits[name] | undefined }

/** Limits that are known, as the engine model takes them. */
export function limitsOf(limits: Limits): Omit<EngineOptions, 'profile'> {
  const { maxNumSeqs, maxNumBatchedTokens, maxModelLenTokens, kvCapacityTokens } = limits
  return {
    ...(maxNumSeqs === undefined ? {} : { maxNumSeqs }),
    ...(maxNumBatchedTokens === undefined ? {} : { maxNumBatchedTokens }),
    ...(maxModelLenTokens === undefined ? {} : { maxModelLenTokens }),
    ...(kvCapacityTokens === undefined
      ? {}
      : { kvBlocks: Math.floor(kvCapacityTokens / DEFAULT_BLOCK_TOKENS) }),
  }
}
