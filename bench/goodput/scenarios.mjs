/** What is run: fleets, workloads and arrivals, each named, so that a result says how to repeat it. */
import { WORKLOAD_CLASSES } from '../../dist/sim/classes.js'
import { logNormal } from '../../dist/sim/lengths.js'
import { profile } from '../../dist/sim/profiles.js'
import { generateWorkload } from '../../dist/sim/workload.js'
import { WORKLOADS } from '../../dist/sim/workloads.js'

/** Deviation of step times; no real engine is exact. */
const STEP_JITTER_RATIO = 0.05
/** What still runs that long after the last arrival is left by its client: above the longest promise. */
export const DRAIN_MS = 30_000

/** The promises: those of the built-in classes, each request worth the same, since a count of them is compared. */
export const CLASSES = {
  ...Object.fromEntries(Object.entries(WORKLOAD_CLASSES).map(([name, slo]) => [name, { ...slo, weight: 1 }])),
  document: { ...WORKLOAD_CLASSES.chat, name: 'document', ttftPer1kTokensMs: 250, weight: 1 },
}

const chat = WORKLOADS.find(({ name }) => name === 'chat')
const only = (change) => [{ ...chat, share: 1, ...change }]

/** Mixes by name; `mixed` is the five classes. */
export const MIXES = {
  mixed: WORKLOADS,
  'short-chat': only({
    prompt: logNormal(250, 0.6),
    output: logNormal(120, 0.7),
    shared: { families: 4, tokens: 128 },
  }),
  'long-prompts': only({
    name: 'document',
    prompt: logNormal(5000, 0.6),
    output: logNormal(100, 0.6),
    shared: { families: 20, tokens: 512 },
  }),
  'long-answers': only({
    prompt: logNormal(250, 0.6),
    output: logNormal(700, 0.7),
    maxTokens: 2048,
    shared: { families: 4, tokens: 128 },
  }),
}

/** In each cycle this much of the time has 2.5 times the rate of the rest; the mean stays. */
const BURST = { cycleMs: 20_000, highMs: 5000, factor: 2.5 }

/** Rate segments of that mean. */
function segmentsOf(arrivals, ratePerSec, durationMs) {
  if (arrivals !== 'burst') return [{ durationMs, fromPerSec: ratePerSec }]
  const { cycleMs, highMs, factor } = BURST
  const lowPerSec = (ratePerSec * cycleMs) / (cycleMs + highMs * (factor - 1))
  const segments = []
  for (let atMs = 0; atMs < durationMs; atMs += cycleMs) {
    const left = durationMs - atMs
    segments.push({ durationMs: Math.min(cycleMs - highMs, left), fromPerSec: lowPerSec })
    if (left > cycleMs - highMs)
      segments.push({ durationMs: Math.min(highMs, left - cycleMs + highMs), fromPerSec: lowPerSec * factor })
  }
  return segments
}

/** The requests of a run, in order of arrival. */
export function requestsOf(scenario, ratePerSec, durationMs, seed) {
  const [first, second] = scenario.mix.split('>')
  const part = (mix, lengthMs, partSeed) => [
    ...generateWorkload({
      seed: partSeed,
      segments: segmentsOf(scenario.arrivals, ratePerSec, lengthMs),
      classes: MIXES[mix],
    }),
  ]
  if (second === undefined) return part(first, durationMs, seed)
  // A workload that turns into another at half-time.
  const later = part(second, durationMs / 2, seed + 500).map((request) => ({
    ...request,
    id: `x${request.id}`,
    atMs: request.atMs + durationMs / 2,
  }))
  return [...part(first, durationMs / 2, seed), ...later]
}

/** The engines of the fleet. */
export function enginesOf(scenario, change = {}) {
  const { maxNumBatchedTokens } = scenario
  const engine = {
    profile: profile(scenario.profile),
    jitterRatio: STEP_JITTER_RATIO,
    ...(maxNumBatchedTokens === undefined ? {} : { maxNumBatchedTokens }),
    ...change,
  }
  return Array.from({ length: scenario.replicas }, () => engine)
}

const BASE = {
  profile: 'Llama-3.1-8B/H100-80G-SXM/tp1',
  replicas: 4,
  arrivals: 'poisson',
  mix: 'mixed',
}
const scenario = (id, change = {}) => ({ id, ...BASE, ...change })

/** The core grid: three fleets under the five classes. */
export const CORE = [
  scenario('8B-H100'),
  scenario('8B-A100-2048', { profile: 'Llama-3.1-8B/A100-80G-SXM/tp1', maxNumBatchedTokens: 2048 }),
  scenario('70B-H100-TP4', { profile: 'Llama-3.1-70B/H100-80G-SXM/tp4' }),
]

/** One thing different from the first of the core each. */
export const FACTORS = [
  scenario('1-replica', { replicas: 1 }),
  scenario('16-replicas', { replicas: 16 }),
  scenario('burst', { arrivals: 'burst' }),
  scenario('chunk-512', { maxNumBatchedTokens: 512 }),
  scenario('chunk-2048', { maxNumBatchedTokens: 2048 }),
]

/** Workloads over which one setting has to hold. */
export const ROBUSTNESS = [
  CORE[0],
  ...['short-chat', 'long-prompts', 'long-answers', 'short-chat>long-prompts', 'long-answers>short-chat'].map(
    (mix) => scenario(mix, { mix }),
  ),
]
