/**
 * Who is compared: each arm with the settings that an operator could choose, the module that it is made from, how, and
 * what of the fleet it changes (vLLM's caps are engine options; llm-d reads metrics every 50 ms). Modules are loaded
 * where a run needs them, so that an arm's results hang on its own code alone.
 *
 * An axis lists the values of one setting in order; `start` is where tuning begins; `about` says in a few words what it
 * is. Who `borrows` predicts with our estimator: its policy is a rival's, but nobody has it in the field.
 */
import { ABLATIONS } from '../../dist/policies/parts.js'

const QUEUE_MS = [0, 50, 100, 250, 500, 1000]
const QUEUE_START = { queueMs: 250 }
const LLMD = { metricsPeriodMs: 50 }
/** Any number of bounces may be tried once more: a rival is not held to our budget. */
const REROUTES = { settings: { rerouteBudgetRatio: 1 } }
const NO_REROUTE = { settings: { rerouteBudgetRatio: 0 } }

const VARIANTS = './variants.mjs'
const SLUICE = '../../dist/policies/sluice.js'
/** What ships as part of the product too. */
const PLAIN = ['round-robin', 'least-outstanding']
const rival = (name, about) => ({
  kind: 'rival',
  module: `../../dist/policies/${PLAIN.includes(name) ? 'plain' : 'rivals'}/${name}.js`,
  about,
})

/** `make(module, setting, { arm, scenario, requests, solo })` gives the scheduler and what the arm asks of the fleet. */
export const ARMS = {
  sluice: {
    kind: 'ours',
    module: SLUICE,
    about: 'untouched: nothing learnt, nothing tuned',
    make: ({ createSluice }) => ({ createScheduler: () => createSluice() }),
  },
  'sluice-prior': {
    kind: 'ours',
    module: VARIANTS,
    about: 'ours, told the profile',
    make: ({ primedSluice }, _, { scenario }) => ({ createScheduler: () => primedSluice(scenario) }),
  },
  clairvoyant: {
    kind: 'ours',
    module: VARIANTS,
    about: 'ours, knowing step costs and the length of each answer',
    make: ({ clairvoyant }, { without }, { scenario, requests }) => ({
      createScheduler: () => clairvoyant(scenario, requests, without),
    }),
  },
  'round-robin': {
    ...rival('round-robin', 'bare: each replica in turn, nobody refused'),
    make: ({ createRoundRobin }) => ({ createScheduler: createRoundRobin }),
  },
  'least-outstanding': {
    ...rival('least-outstanding', 'fewest requests in flight, nobody refused'),
    make: ({ createLeastOutstanding }) => ({ createScheduler: createLeastOutstanding }),
  },
  'least-pending': {
    ...rival('least-pending', 'fewest prompt tokens to prefill, nobody refused'),
    make: ({ createLeastPending }) => ({ createScheduler: createLeastPending }),
  },
  lmetric: {
    ...rival('lmetric', 'LMetric (OSDI 26): prompt tokens times batch size, nobody refused'),
    make: ({ createLMetric }) => ({ createScheduler: () => createLMetric() }),
  },
  limit: {
    ...rival('concurrency-limit', 'static limit and timed FIFO, as of HAProxy'),
    axes: { maxInFlight: [4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256], queueMs: QUEUE_MS },
    start: { maxInFlight: 48, ...QUEUE_START },
    make: ({ createConcurrencyLimit }, setting) => ({
      createScheduler: () => createConcurrencyLimit(setting),
    }),
  },
  'token-cap': {
    ...rival('least-pending', 'cap on queued tokens in vLLM, fewest pending first'),
    axes: {
      maxNumQueuedTokens: [512, 1024, 2048, 3072, 4096, 6144, 8192, 12_288, 16_384, 24_576],
      reroute: [false, true],
    },
    start: { maxNumQueuedTokens: 4096, reroute: true },
    make: ({ createLeastPending }, { maxNumQueuedTokens, reroute }) => ({
      createScheduler: createLeastPending,
      engine: { maxNumQueuedTokens },
      ...(reroute ? REROUTES : NO_REROUTE),
    }),
  },
  'request-cap': {
    ...rival('least-outstanding', 'cap on queued requests in vLLM, fewest in flight first'),
    axes: { maxNumQueuedReqs: [4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256] },
    start: { maxNumQueuedReqs: 48 },
    make: ({ createLeastOutstanding }, { maxNumQueuedReqs }) => ({
      createScheduler: createLeastOutstanding,
      engine: { maxNumQueuedReqs },
      ...REROUTES,
    }),
  },
  'llm-d': {
    ...rival('saturation-gate', 'flow control of llm-d: saturation gate and deadlines'),
    axes: { maxWaiting: [1, 2, 3, 5, 8], queueMs: [...QUEUE_MS, 60_000], credit: [false, true] },
    start: { maxWaiting: 5, queueMs: 500, credit: true },
    make: ({ createSaturationGate }, setting) => ({
      createScheduler: () => createSaturationGate(setting),
      sim: LLMD,
    }),
  },
  'llm-d-probabilistic': {
    ...rival('probabilistic-admitter', 'probabilistic admitter of llm-d'),
    axes: { maxWaiting: [2, 5, 10, 20], factor: [0.3, 1, 3, 10, 30, 100, 300], power: [1, 2, 3, 5] },
    start: { maxWaiting: 5, factor: 300, power: 5 },
    make: ({ createProbabilisticAdmitter }, setting) => ({
      createScheduler: () => createProbabilisticAdmitter({ ...setting, credit: true }),
      sim: LLMD,
    }),
  },
  'lmetric-cap': {
    ...rival('lmetric', 'LMetric with a cap and a timed FIFO'),
    axes: { maxPending: [1, 2, 3, 4, 6, 8, 12, 16], queueMs: QUEUE_MS },
    start: { maxPending: 3, ...QUEUE_START },
    make: ({ createLMetric }, setting) => ({ createScheduler: () => createLMetric(setting) }),
  },
  gradient2: {
    ...rival('gradient2', 'limit that follows latency (Netflix), timed FIFO'),
    axes: {
      maxLimit: [16, 32, 48, 64, 96, 128, 200, 256],
      queueMs: QUEUE_MS,
      toleranceRatio: [1.1, 1.5, 2, 3, 5],
      minLimit: [4, 20],
    },
    start: { maxLimit: 200, ...QUEUE_START, toleranceRatio: 1.5, minLimit: 20 },
    make: ({ createGradient2 }, { minLimit, ...setting }, { solo }) => ({
      createScheduler: () =>
        createGradient2({ ...setting, minLimit: Math.min(minLimit, setting.maxLimit), ...solo }),
    }),
  },
  aimd: {
    ...rival('aimd', 'limit that grows and halves by what is late, timed FIFO'),
    axes: {
      lateRatio: [0.01, 0.03, 0.1, 0.2, 0.4],
      queueMs: QUEUE_MS,
      windowMs: [200, 500, 1000],
      growth: [0.5, 1, 2, 4],
    },
    start: { lateRatio: 0.1, ...QUEUE_START, windowMs: 500, growth: 1 },
    make: ({ createAimd }, setting) => ({ createScheduler: () => createAimd(setting) }),
  },
  scorpio: {
    kind: 'rival',
    borrows: true,
    module: VARIANTS,
    about: 'guards in the manner of SCORPIO, over our predictions',
    axes: {
      depthTokens: [128, 256, 512, 1024, 2048, 4096, 8192],
      tpotRatio: [0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1],
    },
    start: { depthTokens: 2048, tpotRatio: 0.8 },
    make: ({ primedScorpio }, setting, { scenario }) => ({
      createScheduler: () => primedScorpio(setting, scenario),
    }),
  },
}

export const OURS = 'sluice'
/** What stands for no gate at all. */
export const BARE = 'round-robin'
/** Every rival is tuned; those without axes have nothing to tune. */
export const RIVALS = Object.keys(ARMS).filter((name) => ARMS[name].kind === 'rival' && name !== BARE)
/** Rivals that nobody has in the field: they predict as ours does. */
export const BORROWERS = RIVALS.filter((name) => ARMS[name].borrows)

/** Ours without a part each, and ours knowing more. */
export const WITHOUT = Object.keys(ABLATIONS)
export const VARIED = ['sluice-prior', 'clairvoyant', ...WITHOUT]

/** The arm of that name; any other is ours without a part, as `src/policies/parts.ts` lists them. */
export function armOf(name) {
  const known = ARMS[name]
  if (known !== undefined) return known
  return {
    kind: 'ours',
    module: VARIANTS,
    about: `ours without ${ABLATIONS[name].join(', ')}`,
    make: ({ ablated }, _, { arm }) => ({ createScheduler: () => ablated(arm) }),
  }
}

/** A short name of a setting, e.g. `maxInFlight 48, queueMs 250`. */
export function shownSetting(setting) {
  return Object.entries(setting)
    .map(([key, value]) => `${key} ${value}`)
    .join(', ')
}
