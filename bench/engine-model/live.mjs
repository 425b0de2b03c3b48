/** A real vLLM beside the engine model: fitted to what it takes when idle, then asked to foretell it under load. */
import { runOpenLoop, saturate } from '../vllm/client.mjs'
import { tpotMs, ttftMs } from '../vllm/score.mjs'
import { makeArrivals, makeRequest, uniform, WORKLOADS } from '../vllm/workload.mjs'
import { Groups } from './errors.mjs'
import { replay } from './replays.mjs'

const PROMPTS = [32, 96, 192, 256, 512, 1024, 2048]
const BATCHES = [1, 4, 8, 12, 16]
const REPEATS = 3
const DECODED_TOKENS = 60
/** Of what it finishes a second when saturated. */
const LOADS = [0.5, 0.8, 1.2]
const LOAD_SECONDS = 15
const GRACE_MS = 15_000
const SATURATE_LIMIT_SECONDS = 60

const shapeOf = (promptTokens, answerTokens) => ({
  promptMedian: promptTokens,
  promptSigma: 0,
  promptMax: promptTokens,
  answerMin: answerTokens,
  answerMax: answerTokens,
})

/** Tokens of a KV block of vLLM on a CPU. */
const KV_BLOCK_TOKENS = 128

/** The costs of an idle server that was started with those arguments: what was measured, and the profile that it fits. */
export async function idleProfile(port, engineArgs, fitParameters) {
  const idle = await measureIdle(port)
  const limits = {
    seqs: engineArgs['max-num-seqs'],
    budget: engineArgs['max-num-batched-tokens'],
    kvTokens: KV_BLOCK_TOKENS * engineArgs['num-gpu-blocks-override'],
  }
  return { idle, profile: profileOf(idle, fitParameters, limits) }
}

/** What one request, and one batch that starts together, take on an idle server: the quickest of some tries. */
async function measureIdle(port) {
  const rng = uniform(71)
  const prompts = []
  for (const promptTokens of PROMPTS) {
    const tries = []
    for (let turn = 0; turn < REPEATS; turn++) {
      const [seen] = await runOpenLoop(
        port,
        [{ atMs: 0, ...makeRequest(shapeOf(promptTokens, 1), rng) }],
        GRACE_MS,
      )
      tries.push(ttftMs(seen))
    }
    prompts.push({ promptTokens, ttftMs: Math.min(...tries.filter(Number.isFinite)) })
  }
  const batches = []
  for (const sequences of BATCHES) {
    const tries = []
    for (let turn = 0; turn < REPEATS; turn++) {
      const arrivals = Array.from({ length: sequences }, () => ({
        atMs: 0,
        ...makeRequest(shapeOf(16, DECODED_TOKENS), rng),
      }))
      const seen = await runOpenLoop(port, arrivals, GRACE_MS)
      // The last to start decode beside all the others.
      tries.push(Math.min(...seen.map(tpotMs).filter(Number.isFinite)))
    }
    batches.push({ sequences, tpotMs: Math.min(...tries) })
  }
  return { prompts, batches }
}

/** Runs under load, request by request. */
export async function measureLoads(port) {
  const rng = uniform(99)
  const saturatedPerSec = await saturate(
    port,
    () => makeRequest(WORKLOADS.mixed, rng),
    24,
    SATURATE_LIMIT_SECONDS,
  )
  const runs = []
  for (const load of LOADS) {
    const arrivals = makeArrivals(
      WORKLOADS.mixed,
      load * saturatedPerSec,
      LOAD_SECONDS,
      5 + Math.round(10 * load),
    )
    const seen = await runOpenLoop(port, arrivals, GRACE_MS)
    const requests = seen.map((each, at) => ({
      atMs: arrivals[at].atMs,
      promptTokens: each.promptTokens,
      outputTokens: each.answerTokens,
      ttftMs: ttftMs(each),
      tpotMs: tpotMs(each),
    }))
    runs.push({ load, requests })
  }
  return { saturatedPerSec, runs }
}

/**
 * Step costs that explain the idle times best, by least squares of relative errors: a lone prompt takes overhead, a base
 * for each chunk, its tokens and their attention; a decode step a base and a part for each sequence.
 */
export function profileOf({ prompts, batches }, fitParameters, { seqs, budget, kvTokens }) {
  const relative = (x, y) => ({ x, y, sigma: 0.05 * y })
  const loose = (guess) => guess.map((value) => 100 * value)
  const fitted = (rows, guess) => fitParameters(rows, guess, loose(guess))
  const [overheadMs, prefillBaseMs, perTokenMs, perTokenContextMs] = fitted(
    prompts.map(({ promptTokens: n, ttftMs: y }) => relative([1, Math.ceil(n / budget), n, (n * n) / 2], y)),
    [10, 5, 0.2, 1e-5],
  )
  const [decodeBaseMs, perSequenceMs] = fitted(
    batches.map(({ sequences, tpotMs: y }) => relative([1, sequences], y)),
    [5, 0.5],
  )
  return {
    id: 'measured',
    source: 'invented',
    prefill: { floorMs: 0, baseMs: prefillBaseMs, perTokenMs, perTokenContextMs },
    decode: { baseMs: decodeBaseMs, perSequenceMs, perContextTokenMs: 0 },
    stepOverheadMs: 0,
    requestOverheadMs: overheadMs,
    kvCapacityTokens: kvTokens,
    defaults: { maxNumSeqs: seqs, maxNumBatchedTokens: budget },
  }
}

/** The same requests at the same instants through the model; only requests that finished are compared. */
export function checkLoads(sim, runs, profile) {
  const groups = new Groups()
  for (const { load, requests } of runs) {
    const times = replay(sim, requests, { profile, replicas: 1 })
    for (const [at, { ttftMs: first, tpotMs: pace }] of requests.entries()) {
      if (pace === undefined) continue
      groups.add(`TTFT at ${load}x, each request`, first, times[at].ttftMs)
      groups.add(`TPOT at ${load}x, each request`, pace, times[at].tpotMs)
    }
  }
  return groups.summary()
}
