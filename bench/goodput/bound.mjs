/**
 * An upper bound on the share of requests that any schedule whatever can make good. Pure.
 *
 * The fleet is taken as a fluid: replicas * 1 ms of engine time each ms, to be split at will. Each request asks for the
 * least time that it can cost (see work.mjs) between the first instant at which the engine may start on it and the
 * last at which its promise can still be kept; a part of it counts as that part of a request. What can be served then
 * forms a polymatroid (for every span of time, the windows inside it must fit), so that serving the cheapest first is
 * optimal. Once with the prompts alone, up to their TTFT (U1), and once for each pair of token prices with the decodes
 * that have a deadline too (U2); each is a bound, and the least of them holds.
 *
 * Spans are told apart by slots, windows are rounded outwards, prefix caches hold all that they could. So it is loose:
 * a ceiling, no goal. Step noise, which has mean 1, is left out.
 */
import { cacheableTokens, decodeWorkMs, prefillWorkMs, tokenPrices } from './work.mjs'

const SLOTS = 400

/** Requests that fit, in fractions. `jobs`: `{ fromMs, toMs, workMs }`, all within [0, horizonMs]. */
export function fluidOptimum(jobs, { replicas, horizonMs, slots = SLOTS }) {
  const slotMs = horizonMs / slots
  // free[from * width + to]: time left for windows inside the slots [from, to).
  const width = slots + 1
  const free = new Float64Array(width * width)
  for (let from = 0; from < slots; from++) {
    for (let to = from + 1; to <= slots; to++) free[from * width + to] = replicas * slotMs * (to - from)
  }
  let served = 0
  for (const { fromMs, toMs, workMs } of [...jobs].sort((a, b) => a.workMs - b.workMs)) {
    const first = Math.min(slots - 1, Math.floor(fromMs / slotMs))
    const end = Math.max(first + 1, Math.min(slots, Math.ceil(toMs / slotMs)))
    let takenMs = workMs
    for (let from = 0; from <= first; from++) {
      for (let at = from * width + end; at <= from * width + slots; at++) {
        if (free[at] < takenMs) takenMs = free[at]
      }
    }
    if (takenMs <= 0) continue
    served += workMs === 0 ? 1 : takenMs / workMs
    for (let from = 0; from <= first; from++) {
      for (let at = from * width + end; at <= from * width + slots; at++) free[at] -= takenMs
    }
  }
  return served
}

/**
 * `{ prompts, all, bound }`: U1, U2 and the less of them, as shares of the judged requests. `requests` have the fields
 * of the simulator's and `slo`; those that arrive before `fromMs` are not judged; nothing counts after `horizonMs`.
 */
export function goodBound({ requests, profile, limits, replicas, fromMs, horizonMs }) {
  const cached = cacheableTokens(requests)
  const judged = requests
    .map((request, index) => ({ ...request, cachedTokens: cached[index] }))
    .filter(({ atMs, slo }) => atMs >= fromMs && hasTargets(slo))
  if (judged.length === 0) return { prompts: 1, all: 1, bound: 1 }
  const optimum = (jobOf) =>
    fluidOptimum(
      judged.map((request) => jobOf(request)),
      { replicas, horizonMs },
    ) / judged.length
  const prices = tokenPrices(profile, limits)
  const prompts = optimum((request) => promptJob(request, profile, prices[0].alpha, horizonMs))
  const all = Math.min(
    ...prices.map((price) => optimum((request) => wholeJob(request, profile, price, horizonMs))),
  )
  return { prompts, all, bound: Math.min(prompts, all) }
}

const hasTargets = (slo) => [slo.ttftMs, slo.tpotMs, slo.e2eMs].some((target) => target !== undefined)

function promptJob(request, profile, alpha, horizonMs) {
  const { atMs, promptTokens, cachedTokens, slo } = request
  const ttftMs = slo.ttftMs === undefined ? Number.POSITIVE_INFINITY : ttftOf(slo, promptTokens)
  return {
    fromMs: atMs + profile.requestOverheadMs,
    toMs: Math.min(horizonMs, atMs + Math.min(ttftMs, slo.e2eMs ?? Number.POSITIVE_INFINITY)),
    workMs: prefillWorkMs(profile, promptTokens, cachedTokens, alpha),
  }
}

/** Prompt and decodes up to the last token's deadline; the prompt alone when that is never or too late to be seen. */
function wholeJob(request, profile, { alpha, beta }, horizonMs) {
  const prompt = promptJob(request, profile, alpha, horizonMs)
  const toMs = request.atMs + lastTokenMs(request)
  if (!(toMs <= horizonMs)) return prompt
  const { promptTokens, outputTokens } = request
  const workMs = prompt.workMs + decodeWorkMs(profile, promptTokens, outputTokens, beta)
  return { fromMs: prompt.fromMs, toMs, workMs }
}

function lastTokenMs({ slo, promptTokens, outputTokens }) {
  const { ttftMs, tpotMs, e2eMs = Number.POSITIVE_INFINITY } = slo
  if (ttftMs === undefined || tpotMs === undefined) return e2eMs
  return Math.min(e2eMs, ttftOf(slo, promptTokens) + tpotMs * (outputTokens - 1))
}

const ttftOf = (slo, promptTokens) => slo.ttftMs + (slo.ttftPer1kTokensMs * promptTokens) / 1000
