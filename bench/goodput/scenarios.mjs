/**
 * What is run, as plain values: fleets, workloads, arrivals and faults, each named, so that a result says how to repeat
 * it. A scenario draws from one named workload, or `shift`s from one to another at half-time, or has `tenants` with a
 * workload each (`asking` in those proportions), or replays a `trace`. Where several workloads meet, each comes at the
 * same load of its own capacity.
 */

const BASE = {
  profile: 'Llama-3.1-8B/H100-80G-SXM/tp1',
  replicas: 4,
  engine: {},
  workload: 'mixed',
}

const A100 = {
  profile: 'Llama-3.1-8B/A100-80G-SXM/tp1',
  engine: { maxNumBatchedTokens: 2048 },
}

/** As a proxy without any setting sees it: no limit is told, prompts are estimated, and the engine is not next door. */
const UNTOLD = { limitsKnown: false, promptErrorRatio: 0.2, networkMs: 2 }

/** In each 20 s, 5 s have 2.5 times the mean rate. */
const BURST = { rhythm: { kind: 'onOff', onMs: 5000, offMs: 15_000, onRatio: 2.5 } }

const scenario = (id, change = {}) => ({ id, ...BASE, ...change })

/** The core grid: three fleets under the five classes. */
export const CORE = [
  scenario('8B-H100'),
  scenario('8B-A100-2048', A100),
  scenario('70B-H100-TP4', { profile: 'Llama-3.1-70B/H100-80G-SXM/tp4' }),
]

/**
 * One thing different from the first of the core each. Settings are per replica, so the large fleet, which is slow to
 * simulate, is run with those found on four replicas and for a shorter time.
 */
export const FACTORS = [
  scenario('1-replica', { replicas: 1 }),
  scenario('16-replicas', { replicas: 16, settingsOf: '8B-H100', durationMs: 24_000 }),
  scenario('burst', { arrivals: BURST }),
  scenario('chunk-512', { engine: { maxNumBatchedTokens: 512 } }),
  scenario('chunk-2048', { engine: { maxNumBatchedTokens: 2048 } }),
  scenario('untold', { sight: UNTOLD }),
]

/** Public traces on one replica, by the names that they have in the folder that is offered; `rows`: that many of them. */
export const TRACES = [
  scenario('azure-code-burst', {
    replicas: 1,
    trace: { file: 'azure-2023-code-burst5min.csv', className: 'autocomplete' },
  }),
  scenario('azure-conversations', {
    replicas: 1,
    trace: { file: 'azure-2023-conv.csv', className: 'chat', rows: 4000 },
  }),
  scenario('mooncake-conversations', {
    replicas: 1,
    trace: { file: 'mooncake-conversation-busy10min.jsonl', className: 'document' },
  }),
]

/** Many workloads are many runs, so each meets a small fleet. */
const small = (id, change) => scenario(id, { replicas: 2, ...change })

const PARTS = ['mixed', 'short-chat', 'long-prompts', 'long-answers'].map((workload) =>
  small(workload, { workload }),
)

/** Workloads over which one setting has to hold. */
export const ROBUSTNESS = [
  ...PARTS,
  small('short-chat-to-long-prompts', { shift: ['short-chat', 'long-prompts'] }),
  small('long-answers-to-short-chat', { shift: ['long-answers', 'short-chat'] }),
  scenario('mixed-replica-slows', {
    faults: [{ kind: 'slow', replicaIndex: 0, speedRatio: 0.5, fromRatio: 0.5 }],
  }),
]

/** Where everything starts anew: the workloads of a sound fleet, and the mix again on engines that tell nothing. */
export const COLD = [
  ...ROBUSTNESS.filter(({ faults }) => faults === undefined),
  small('mixed-engines-tell-nothing', { sight: UNTOLD }),
]

/** Workloads on engines whose prefill steps are long, for what holds work while no prediction is believed. */
export const UNTRUSTED = PARTS.map(({ workload }) => small(`untrusted-${workload}`, { ...A100, workload }))

/**
 * Tenants with equal shares of the fleet whose requests cost differently: all asking for as much, and one for ten times
 * what each of the others does, who are then well within their shares.
 */
const UNLIKE = ['short-chat', 'long-prompts', 'long-answers']
export const TENANTS = [
  small('tenants', { tenants: UNLIKE }),
  small('tenants-one-floods', { tenants: UNLIKE, asking: [10, 1, 1] }),
]

/** When what breaks does so, as part of the run. */
const BREAKS_RATIO = 0.25

/** What breaks, and the part of the fleet that is left; `estimatorBias` is for whoever is told the profile. */
export const FAULTS = [
  scenario('slow-replica', {
    faults: [{ kind: 'slow', replicaIndex: 0, speedRatio: 0.5, fromRatio: BREAKS_RATIO }],
    leftRatio: 7 / 8,
  }),
  scenario('dead-replica', {
    faults: [{ kind: 'dead', replicaIndex: 0, fromRatio: BREAKS_RATIO }],
    leftRatio: 3 / 4,
  }),
  scenario('frozen-metrics', {
    faults: [{ kind: 'frozenMetrics', fromRatio: BREAKS_RATIO }],
    leftRatio: 1,
  }),
  scenario('late-metrics', {
    faults: [{ kind: 'lateMetrics', lagMs: 3000, fromRatio: BREAKS_RATIO }],
    leftRatio: 1,
  }),
  scenario('tokens-overcounted', {
    faults: [{ kind: 'tokenizerBias', ratio: 1.2, fromRatio: BREAKS_RATIO }],
    leftRatio: 1,
  }),
  scenario('estimates-doubled', { faults: [{ kind: 'estimatorBias', ratio: 2 }], leftRatio: 1 }),
  scenario('estimates-halved', { faults: [{ kind: 'estimatorBias', ratio: 0.5 }], leftRatio: 1 }),
]

/** Every scenario's name. */
export const scenarioIds = () => {
  const all = [...CORE, ...FACTORS, ...TRACES, ...ROBUSTNESS, ...COLD, ...TENANTS, ...UNTRUSTED, ...FAULTS]
  return [...new Set(all.map(({ id }) => id))]
}

/** The workloads whose own capacities have to be known first; empty for a scenario with one workload. */
export function partsOf({ shift, tenants }) {
  const names = shift ?? tenants ?? []
  return names.map((name) => PARTS.find(({ id }) => id === name))
}

/** The part of a scenario that a run hangs on. */
export function essenceOf({ id, settingsOf, durationMs, leftRatio, ...essence }) {
  return essence
}

/** A word or two on what comes. */
export function describe({ workload, shift, tenants, trace, arrivals }) {
  const what = trace?.file ?? shift?.join(', then ') ?? tenants?.join(' + ') ?? workload
  return arrivals === undefined ? what : `${what} in bursts`
}
