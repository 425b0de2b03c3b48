/** Seeded requests for the real engine: Poisson arrivals, exact prompt and answer lengths. */

/** TTFT counts from the scheduled arrival; the target grows with the prompt. In ms. */
export const TTFT_BASE_MS = 800
export const TTFT_PER_1K_TOKENS_MS = 2000

/** Of the measured rate: what comes before the rows begin. */
export const WARM_LOAD = 0.7

/** The one promise of a workload without classes. */
export const plainSlo = (tpotMs) => ({
  ttftMs: TTFT_BASE_MS,
  ttftPer1kTokensMs: TTFT_PER_1K_TOKENS_MS,
  tpotMs,
})

/**
 * Prompt lengths are log-normal (median, sigma of the logarithm, cap); answers uniform and exact. Tokens. `classes` is a
 * mix: each with its share of the requests, its lengths, and its promise (`slo`; none: whatever capacity is left).
 */
export const WORKLOADS = {
  mixed: { promptMedian: 200, promptSigma: 1.0, promptMax: 3000, answerMin: 60, answerMax: 150 },
  'long-answers': { promptMedian: 60, promptSigma: 0.5, promptMax: 300, answerMin: 250, answerMax: 400 },
  'long-prompts': { promptMedian: 1200, promptSigma: 0.5, promptMax: 4000, answerMin: 10, answerMax: 30 },
  classes: {
    classes: {
      chat: {
        share: 0.4,
        lengths: { promptMedian: 200, promptSigma: 0.8, promptMax: 2000, answerMin: 60, answerMax: 150 },
        slo: { ttftMs: 800, ttftPer1kTokensMs: 1000, tpotMs: 50 },
      },
      voice: {
        share: 0.2,
        lengths: { promptMedian: 100, promptSigma: 0.6, promptMax: 600, answerMin: 30, answerMax: 60 },
        slo: { ttftMs: 500, tpotMs: 30 },
      },
      autocomplete: {
        share: 0.25,
        lengths: { promptMedian: 250, promptSigma: 0.5, promptMax: 1000, answerMin: 8, answerMax: 24 },
        slo: { ttftMs: 500 },
      },
      agent: {
        share: 0.1,
        lengths: { promptMedian: 800, promptSigma: 0.5, promptMax: 3000, answerMin: 40, answerMax: 80 },
        slo: { e2eMs: 10_000 },
      },
      batch: {
        share: 0.05,
        lengths: { promptMedian: 400, promptSigma: 0.5, promptMax: 2000, answerMin: 100, answerMax: 200 },
      },
    },
  },
}

/** Token ids that stand for plain text in the vocabulary of test/vllm/tiny_model.py. */
const FIRST_ID = 300
const LAST_ID = 4000

/** Uniform numbers in [0, 1) from a 32-bit seed (mulberry32). */
export function uniform(seed) {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

const between = (rng, low, high) => low + Math.floor(rng() * (high - low + 1))
const normal = (rng) => Math.sqrt(-2 * Math.log(1 - rng())) * Math.cos(2 * Math.PI * rng())

/** One request of the workload: its size, the body for /v1/completions, and in a mix its class with its promise. */
export function makeRequest(workload, rng) {
  const [className, { lengths, slo }] =
    workload.classes === undefined ? [undefined, { lengths: workload }] : drawnClass(workload.classes, rng)
  const drawn = lengths.promptMedian * Math.exp(lengths.promptSigma * normal(rng))
  const promptTokens = Math.max(8, Math.min(lengths.promptMax, Math.round(drawn)))
  const answerTokens = between(rng, lengths.answerMin, lengths.answerMax)
  const prompt = Array.from({ length: promptTokens }, () => between(rng, FIRST_ID, LAST_ID))
  const exact = { max_tokens: answerTokens, min_tokens: answerTokens, ignore_eos: true }
  const body = Buffer.from(JSON.stringify({ model: 'tiny', stream: true, prompt, ...exact }))
  const request = { promptTokens, answerTokens, body }
  return className === undefined ? request : { ...request, className, slo: slo ?? null }
}

function drawnClass(classes, rng) {
  let left = rng()
  for (const entry of Object.entries(classes)) {
    left -= entry[1].share
    if (left < 0) return entry
  }
  return Object.entries(classes).at(-1)
}

/** Requests that arrive at `ratePerSec` on average over `seconds`, each with its instant in ms from the start. */
export function makeArrivals(workload, ratePerSec, seconds, seed) {
  const rng = uniform(seed)
  const arrivals = []
  for (let atMs = 0; ; ) {
    atMs += (-Math.log(1 - rng()) * 1000) / ratePerSec
    if (atMs >= seconds * 1000) return arrivals
    arrivals.push({ atMs, ...makeRequest(workload, rng) })
  }
}
