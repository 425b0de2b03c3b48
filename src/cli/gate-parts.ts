/** Makes the gate's parts from a configuration: its settings, and the scheduler of its mode with what profiles say. */
import type { Config } from '../config/config.ts'
import { createGate, type Gate } from '../core/gate.ts'
import type { GateSettings } from '../core/gate-settings.ts'
import type { Scheduler } from '../core/scheduler.ts'
import type { StepPrior } from '../estimate/step-model.ts'
import { createLeastOutstanding } from '../policies/rivals/least-outstanding.ts'
import { createSluice } from '../policies/sluice.ts'
import { profile, profileIds } from '../sim/profiles.ts'
import { judge } from '../slo/judge.ts'

/** Fits of profiles miss an independent load test by 5 to 17 %; engines in service differ by more. */
const PROFILE_UNCERTAINTY_RATIO = 0.3

export interface GateParts {
  readonly gate: Gate
  /** The one that learns and predicts: active in enforce, advising in shadow, absent when off. */
  readonly predictor: Scheduler | undefined
}

/** A gate in the configuration's mode. A change of mode needs a new one. */
export function createGateParts(config: Config): GateParts {
  const settings = gateSettings(config)
  if (config.mode === 'off') {
    return {
      gate: createGate({ settings, scheduler: createLeastOutstanding(), judge }),
      predictor: undefined,
    }
  }
  const predictor = createSluice({ priors: priorsOf(config) })
  const gate =
    config.mode === 'enforce'
      ? createGate({ settings, scheduler: predictor, judge })
      : createGate({ settings, scheduler: createLeastOutstanding(), advisor: predictor, judge })
  return { gate, predictor }
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
  const { prefill, decode, stepOverheadMs, requestOverheadMs } = profile(profileId)
  return {
    baseMs: decode.baseMs + stepOverheadMs,
    perSequenceMs: decode.perSequenceMs,
    perContextTokenMs: decode.perContextTokenMs,
    perChunkMs: Math.max(0, prefill.baseMs - decode.baseMs),
    perPrefillTokenMs: prefill.perTokenMs,
    requestOverheadMs,
    uncertaintyRatio: PROFILE_UNCERTAINTY_RATIO,
  }
}
