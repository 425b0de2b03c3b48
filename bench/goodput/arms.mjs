/**
 * Who is compared: each arm with the settings that an operator could choose, how it is made from them, and what of
 * the fleet it changes (vLLM's caps are engine options; llm-d reads metrics every 50 ms).
 *
 * An axis lists the values of one setting in order; `start` is where tuning begins.
 */
import { priorOf } from '../../dist/cli/gate-parts.js'
import { ABLATIONS as PARTS_LEFT_OUT } from '../../dist/policies/parts.js'
import { createAimd } from '../../dist/policies/rivals/aimd.js'
import { createConcurrencyLimit } from '../../dist/policies/rivals/concurrency-limit.js'
import { createGradient2 } from '../../dist/policies/rivals/gradient2.js'
import { createLeastOutstanding } from '../../dist/policies/rivals/least-outstanding.js'
import { createLeastPending } from '../../dist/policies/rivals/least-pending.js'
import { createLMetric } from '../../dist/policies/rivals/lmetric.js'
import { createProbabilisticAdmitter } from '../../dist/policies/rivals/probabilistic-admitter.js'
import { createRoundRobin } from '../../dist/policies/rivals/round-robin.js'
import { createSaturationGate } from '../../dist/policies/rivals/saturation-gate.js'
import { createScorpio } from '../../dist/policies/rivals/scorpio.js'
import { createSluice } from '../../dist/policies/sluice.js'
import { profile } from '../../dist/sim/profiles.js'
import { Clairvoyant } from './clairvoyant.mjs'

const QUEUE_MS = [0, 50, 100, 250, 500, 1000]
const QUEUE_START = { queueMs: 250 }
const LLMD = { metricsPeriodMs: 50 }
/** Any number of bounces may be tried once more: a rival is not held to our budget. */
const REROUTES = { settings: { rerouteBudgetRatio: 1 } }
const NO_REROUTE = { settings: { rerouteBudgetRatio: 0 }, neverReroute: true }

/** What the fleet's profile says of a prompt alone. */
const soloOf = (scenario) => {
  const { prefill, requestOverheadMs } = profile(scenario.profile)
  return { soloBaseMs: prefill.floorMs + requestOverheadMs, soloPerTokenMs: prefill.perTokenMs }
}

const ours = (without) => ({
  kind: 'ours',
  make: () => ({ createScheduler: () => createSluice({ without }) }),
})
const unlimited = (create) => ({ kind: 'rival', make: () => ({ createScheduler: create }) })

export const ARMS = {
  sluice: ours([]),
  'sluice-prior': {
    kind: 'ours',
    make: (_, scenario) => ({
      createScheduler: () => createSluice({ priors: { [scenario.profile]: priorOf(scenario.profile) } }),
    }),
  },
  clairvoyant: {
    kind: 'ours',
    make: (_, scenario, requests) => ({
      createScheduler: () => createSluice({ learnt: new Clairvoyant(scenario.profile, requests) }),
    }),
  },
  'round-robin': unlimited(createRoundRobin),
  'least-outstanding': unlimited(createLeastOutstanding),
  lmetric: unlimited(() => createLMetric()),
  limit: {
    kind: 'rival',
    axes: { maxInFlight: [4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256], queueMs: QUEUE_MS },
    start: { maxInFlight: 48, ...QUEUE_START },
    make: (setting) => ({ createScheduler: () => createConcurrencyLimit(setting) }),
  },
  'token-cap': {
    kind: 'rival',
    axes: {
      maxNumQueuedTokens: [512, 1024, 2048, 3072, 4096, 6144, 8192, 12_288, 16_384, 24_576],
      reroute: [false, true],
    },
    start: { maxNumQueuedTokens: 4096, reroute: true },
    make: ({ maxNumQueuedTokens, reroute }) => ({
      createScheduler: createLeastPending,
      engine: { maxNumQueuedTokens },
      ...(reroute ? REROUTES : NO_REROUTE),
    }),
  },
  'request-cap': {
    kind: 'rival',
    axes: { maxNumQueuedReqs: [4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256] },
    start: { maxNumQueuedReqs: 48 },
    make: ({ maxNumQueuedReqs }) => ({
      createScheduler: createLeastOutstanding,
      engine: { maxNumQueuedReqs },
      ...REROUTES,
    }),
  },
  'llm-d': {
    kind: 'rival',
    axes: { maxWaiting: [1, 2, 3, 5, 8], queueMs: [...QUEUE_MS, 60_000], credit: [false, true] },
    start: { maxWaiting: 5, queueMs: 500, credit: true },
    make: (setting) => ({ createScheduler: () => createSaturationGate(setting), sim: LLMD }),
  },
  'llm-d-probabilistic': {
    kind: 'rival',
    axes: { maxWaiting: [2, 5, 10, 20], factor: [0.3, 1, 3, 10, 30, 100, 300], power: [1, 2, 3, 5] },
    start: { maxWaiting: 5, factor: 300, power: 5 },
    make: (setting) => ({
      createScheduler: () => createProbabilisticAdmitter({ ...setting, credit: true }),
      sim: LLMD,
    }),
  },
  'lmetric-cap': {
    kind: 'rival',
    axes: { maxPending: [1, 2, 3, 4, 6, 8, 12, 16], queueMs: QUEUE_MS },
    start: { maxPending: 3, ...QUEUE_START },
    make: (setting) => ({ createScheduler: () => createLMetric(setting) }),
  },
  gradient2: {
    kind: 'rival',
    axes: {
      maxLimit: [16, 32, 48, 64, 96, 128, 200, 256],
      queueMs: QUEUE_MS,
      toleranceRatio: [1.1, 1.5, 2, 3],
      minLimit: [4, 20],
    },
    start: { maxLimit: 200, ...QUEUE_START, toleranceRatio: 1.5, minLimit: 20 },
    make: ({ minLimit, ...setting }, scenario) => ({
      createScheduler: () =>
        createGradient2({
          ...setting,
          minLimit: Math.min(minLimit, setting.maxLimit),
          ...soloOf(scenario),
        }),
    }),
  },
  aimd: {
    kind: 'rival',
    axes: {
      lateRatio: [0.01, 0.03, 0.1, 0.2],
      queueMs: QUEUE_MS,
      windowMs: [200, 500, 1000],
      growth: [0.5, 1, 2, 4],
    },
    start: { lateRatio: 0.1, ...QUEUE_START, windowMs: 500, growth: 1 },
    make: (setting) => ({ createScheduler: () => createAimd(setting) }),
  },
  scorpio: {
    kind: 'ours',
    axes: { depthTokens: [512, 1024, 2048, 4096, 8192], tpotRatio: [0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1] },
    start: { depthTokens: 2048, tpotRatio: 0.8 },
    make: (setting, scenario) => ({
      createScheduler: () =>
        createScorpio({ ...setting, priors: { [scenario.profile]: priorOf(scenario.profile) } }),
    }),
  },
  ...Object.fromEntries(Object.entries(PARTS_LEFT_OUT).map(([name, without]) => [name, ours(without)])),
}

export const OURS = 'sluice'
/** What stands for no gate at all. */
export const BARE = 'round-robin'
export const RIVALS = [
  'least-outstanding',
  'lmetric',
  'limit',
  'token-cap',
  'request-cap',
  'llm-d',
  'llm-d-probabilistic',
  'lmetric-cap',
  'gradient2',
  'aimd',
  'scorpio',
]
export const ABLATIONS = Object.keys(PARTS_LEFT_OUT)

/** A short name of a setting, e.g. `maxInFlight 48, queueMs 250`. */
export function shownSetting(setting) {
  return Object.entries(setting)
    .map(([key, value]) => `${key} ${value}`)
    .join(', ')
}
