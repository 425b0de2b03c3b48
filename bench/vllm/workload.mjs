/** Seeded requests for the real engine: Poisson arrivals, exact prompt and answer lengths. */

/** Prompt lengths are log-normal (median, sigma of the logarithm, cap); answers uniform and exact. Tokens. */
export const WORKLOADS = {
  mixed: { promptMedian: 200, promptSigma: 1.0, promptMax: 3000, answerMin: 60, answerMax: 150 },
  'long-answers': { promptMedian: 60, promptSigma: 0.5, promptMax: 300, answerMin: 250, answerMax: 400 },
  'long-prompts': { promptMedian: 1200, promptSigma: 0.5, promptMax: 4000, answerMin: 10, answerMax: 30 },
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

/** One request of the workload: its size and the body for /v1/completions. */
export function makeRequest(shape, rng) {
  const drawn = shape.promptMedian * Math.exp(shape.promptSigma * normal(rng))
  const promptTokens = Math.max(8, Math.min(shape.promptMax, Math.round(drawn)))
  const answerTokens = between(rng, shape.answerMin, shape.answerMax)
  const prompt = Array.from({ length: promptTokens }, () => between(rng, FIRST_ID, LAST_ID))
  const exact = { max_tokens: answerTokens, min_tokens: answerTokens, ignore_eos: true }
  const body = Buffer.from(JSON.stringify({ model: 'tiny', stream: true, prompt, ...exact }))
  return { promptTokens, answerTokens, body }
}

/** Requests that arrive at `ratePerSec` on average over `seconds`, each with its instant in ms from the start. */
export function makeArrivals(shape, ratePerSec, seconds, seed) {
  const rng = uniform(seed)
  const arrivals = []
  for (let atMs = 0; ; ) {
    atMs += (-Math.log(1 - rng()) * 1000) / ratePerSec
    if (atMs >= seconds * 1000) return arrivals
    arrivals.push({ atMs, ...makeRequest(shape, rng) })
  }
}
