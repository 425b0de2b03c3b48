/** What hindsight says of one run: the certified bound, and what each request would cost. */
import { profile } from '../../dist/sim/profiles.js'
import { goodBound } from './bound.mjs'
import { countsFromMs, DRAIN_MS } from './cell.mjs'
import { CLASSES, enginesOf, requestsOf } from './requests.mjs'
import { cacheableTokens, decodeWorkMs, prefillWorkMs } from './work.mjs'

/** The bound of a run of that length at that rate. */
export function boundOf(spec) {
  const { scenario, durationMs } = spec
  const [engine] = enginesOf(scenario)
  const { maxNumSeqs = engine.profile.defaults.maxNumSeqs } = engine
  const { maxNumBatchedTokens = engine.profile.defaults.maxNumBatchedTokens } = engine
  return goodBound({
    requests: requestsOf(spec).map((request) => ({ ...request, slo: CLASSES[request.className] })),
    profile: engine.profile,
    limits: { maxNumSeqs, maxNumBatchedTokens },
    replicas: scenario.replicas,
    fromMs: countsFromMs(spec),
    horizonMs: durationMs + DRAIN_MS,
  })
}

/** By request: whether it is judged, and what it costs at the margin of a full batch, in ms. */
export function costsOf(spec) {
  const requests = requestsOf(spec)
  const step = profile(spec.scenario.profile)
  const cached = cacheableTokens(requests)
  const hasTargets = ({ ttftMs, tpotMs, e2eMs }) => (ttftMs ?? tpotMs ?? e2eMs) !== undefined
  return {
    judged: requests.map(
      ({ atMs, className }) => atMs >= countsFromMs(spec) && hasTargets(CLASSES[className]),
    ),
    costs: requests.map(({ promptTokens, outputTokens }, index) => {
      const promptMs = prefillWorkMs(step, promptTokens, cached[index], step.prefill.perTokenMs)
      return promptMs + decodeWorkMs(step, promptTokens, outputTokens, step.decode.perSequenceMs)
    }),
  }
}
