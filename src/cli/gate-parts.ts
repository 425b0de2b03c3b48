/** Makes the gate from a configuration: its settings, and the schedulers of its mode with what profiles say. */
import type { Config } from '../config/config.ts'
import { createGate, type Gate } from '../core/gate.ts'
import type { GateSettings } from '../core/gate-settings.ts'
import type { Scheduler } from '../core/scheduler.ts'
import type { StepPrior } from '../estimate/step-model.ts'
import { createLeastOutstanding } from '../policies/plain/least-outstanding.ts'
import { createSluice } from '../policies/sluice.ts'
import { type EngineProfile, profile, profileIds } from '../sim/profiles.ts'
import { judge } from '../slo/judge.ts'

/** Fits of profiles miss an independent load test by 5 to 17 %; engines in service differ by more. */
const PROFILE_UNCERTAINTY_RATIO = 0.3

/** Who decides, who only advises, and which of the two predicts. */
export interface Roles {
  readonly scheduler: Scheduler
  readonly advisor?: Scheduler
  readonly predictor: Scheduler | undefined
}

/** The roles of a mode. A predictor that goes on keeps what it has learnt; a new one begins with `priors`. */
export function rolesFor(
  config: Config,
  known: Scheduler | undefined,
  priors: () => Readonly<Record<string, StepPrior>> = () => priorsOf(config),
): Roles {
  if (config.mode === 'off') return { scheduler: createLeastOutstanding(), predictor: undefined }
  const predictor = known ?? createSluice({ priors: priors() })
  if (config.mode === 'enforce') return { scheduler: predictor, predictor }
  return { scheduler: createLeastOutstanding(), advisor: predictor, predictor }
}

/** A gate in the roles given. */
export function createGateOf({ scheduler, advisor }: Roles, config: Config): Gate {
  const settings = gateSettings(config)
  return createGate({ settings, scheduler, judge, ...(advisor === undefined ? {} : { advisor }) })
}

/** What of the configuration the gate obeys. */
export function gateSettings(config: Config): GateSettings {
  return {
    waiting: config.limits.waiting,
    rerouteBudgetRatio: config.rerouteBudgetRatio,
    instances: config.instances,
    tenants: Object.fromEntries(config.tenants.map(({ name, limits }) => [name, limits])),
    configDigest: config.digest,
  }
}

/** Priors by replica group (`model/engine`), for models with a profile. */
function priorsOf(config: Config): Readonly<Record<string, StepPrior>> {
  const known = new Set(profileIds())
  const entries = config.models.flatMap((model): [string, StepPrior][] => {
    if (model.profile === undefined || !known.has(model.profile)) return []
    const prior = priorOf(model.profile)
    return model.replicas.map(({ engine }) => [`${model.name}/${engine}`, prior])
  })
  return Object.fromEntries(entries)
}

/** What a profile says of an engine, unsure as fits are. Throws a RangeError for an unknown profile. */
export function priorOf(profileId: string): StepPrior {
  return priorLike(profile(profileId))
}

/** The same of a profile that is at hand. */
export function priorLike({ prefill, decode, stepOverheadMs, requestOverheadMs }: EngineProfile): StepPrior {
  return {
    baseMs: decode.baseMs + stepOverheadMs,
    perSequenceMs: decode.perSequenceMs,
    perContextTokenMs: decode.perContextTokenMs,
    perChunkMs: Math.max(0, prefill.baseMs - decode.baseMs),
    perPrefillTokenMs: prefill.perTokenMs,
    perPairMs: prefill.perTokenContextMs,
    requestOverheadMs,
    uncertaintyRatio: PROFILE_UNCERTAINTY_RATIO,
  }
}
