/** What the demo shows: fleet, promises and load, scaled so that a laptop is never the bottleneck. */
import type { SloClass } from '../core/request.ts'
import type { Ms, Ratio } from '../core/units.ts'
import type { LoadPhase } from '../load/plan.ts'
import { type Capacity, findCapacity } from '../sim/capacity.ts'
import { profile } from '../sim/profiles.ts'

/** Invented and slow: 16 streams decode at about 480 tokens/s, so that four replicas make fewer than 2000 in all. */
export const DEMO_PROFILE = 'demo/slow'
export const DEMO_MODEL = 'demo'
/** What the engines of that profile are started with, in the configuration's words. */
export const DEMO_ENGINE_ARGS = {
  max_num_seqs: profile(DEMO_PROFILE).defaults.maxNumSeqs,
  max_num_batched_tokens: profile(DEMO_PROFILE).defaults.maxNumBatchedTokens,
}
export const REPLICAS_PER_FLEET = 2

/** The five workloads, each length times this: short enough for many requests a second on slow engines. */
export const DEMO_LENGTH_RATIO: Ratio = 0.2

/** Promises that a lightly loaded replica of that profile keeps with room, since its steps are slow too. */
export const DEMO_CLASSES: Readonly<Record<string, SloClass>> = {
  chat: promise('chat', { ttftMs: 1000, tpotMs: 80, objectiveRatio: 0.99 }),
  voice: promise('voice', { ttftMs: 800, tpotMs: 90, objectiveRatio: 0.99, weight: 2 }),
  autocomplete: promise('autocomplete', { ttftMs: 800, objectiveRatio: 0.99 }),
  agent: promise('agent', {
    ttftMs: 2500,
    ttftPer1kTokensMs: 1000,
    e2eMs: 15_000,
    objectiveRatio: 0.98,
    overload: 'wait',
    maxWaitMs: 10_000,
  }),
  batch: promise('batch', { overload: 'wait', maxWaitMs: 30_000 }),
}

/** The ramp: how many times its capacity each fleet is offered, in order. */
export const DEMO_LOADS: readonly number[] = [0.5, 1, 1.5, 2, 2.5]

/** Long enough that two seeds agree on the capacity. */
const CAPACITY_TRIAL_MS: Ms = 80_000

/** A ramp's length unless `--duration` is shorter. */
export const DEMO_RAMP_MS: Ms = 120_000

function promise(name: string, targets: Partial<SloClass>): SloClass {
  return { name, ttftPer1kTokensMs: 0, weight: 1, overload: 'shed', maxWaitMs: 5000, ...targets }
}

/** What one fleet of the demo carries: 1x. Simulates for about a second. */
export function demoCapacity(): Capacity {
  return findCapacity({
    engines: Array.from({ length: REPLICAS_PER_FLEET }, () => ({ profile: profile(DEMO_PROFILE) })),
    classes: DEMO_CLASSES,
    lengthRatio: DEMO_LENGTH_RATIO,
    durationMs: CAPACITY_TRIAL_MS,
  })
}

/** The phases of one ramp that lasts `rampMs`. */
export function demoPhases(capacityPerSec: number, rampMs: Ms): readonly LoadPhase[] {
  return DEMO_LOADS.map((times) => ({
    name: `${times}x`,
    durationMs: rampMs / DEMO_LOADS.length,
    ratePerSec: times * capacityPerSec,
  }))
}
