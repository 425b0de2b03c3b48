/** Load tests replayed through the engine model: the same requests at the same instants. */
import { quantile } from '../goodput/stats.mjs'
import { Groups } from './errors.mjs'

/** Requests go to the replicas in turn; returns the times of each. */
export function replay({ EngineModel }, requests, { replicas, ...options }) {
  const engines = Array.from({ length: replicas }, (_, at) => new EngineModel({ ...options, seed: at + 1 }))
  const seen = requests.map(() => ({}))
  const note = ({ emitted, endedAtMs }) => {
    for (const { requestId } of emitted) {
      const own = seen[Number(requestId)]
      own.firstAtMs ??= endedAtMs
      own.lastAtMs = endedAtMs
    }
  }
  for (const [at, { atMs, promptTokens, outputTokens }] of requests.entries()) {
    const engine = engines[at % replicas]
    engine.advanceTo(atMs, note)
    engine.submit({ id: String(at), promptTokens, outputTokens: [outputTokens] }, atMs)
  }
  for (const engine of engines) engine.advanceTo(Number.MAX_SAFE_INTEGER, note)
  return requests.map(({ atMs, outputTokens }, at) => {
    const { firstAtMs, lastAtMs } = seen[at]
    const tpotMs = outputTokens > 1 ? (lastAtMs - firstAtMs) / (outputTokens - 1) : undefined
    return { ttftMs: firstAtMs - atMs, tpotMs, endedAtMs: lastAtMs }
  })
}

/** Runs of short prompts at a constant rate: only medians of the lengths are known, and lengths differ little. */
export function checkShort(sim, curves, optionsOf) {
  const groups = new Groups()
  for (const run of curves.filter(({ workload }) => workload === 'short')) {
    const options = optionsOf(run.run)
    if (options === undefined) continue
    const requests = Array.from({ length: run.n }, (_, at) => ({
      atMs: (at * 1000) / run.qps,
      promptTokens: run.prompt_p50,
      outputTokens: run.output_p50,
    }))
    const times = replay(sim, requests, { replicas: run.replicas, ...options })
    groups.add(
      'TTFT p50',
      run.ttft_p50_s * 1000,
      quantile(
        times.map(({ ttftMs }) => ttftMs),
        0.5,
      ),
    )
    groups.add(
      'TTFT p90',
      run.ttft_p90_s * 1000,
      quantile(
        times.map(({ ttftMs }) => ttftMs),
        0.9,
      ),
    )
    groups.add(
      'TPOT p50',
      run.itl_p50_ms,
      quantile(
        times.map(({ tpotMs }) => tpotMs),
        0.5,
      ),
    )
  }
  return groups.summary()
}

/** Above that measured TTFT (median of a run) the fleet is taken to be saturated. */
const SATURATED_TTFT_MS = 1000

/** Runs whose every request is known, replayed request by request. */
export function checkRequests(sim, rows, optionsOf) {
  const groups = new Groups()
  const runs = new Map()
  for (const row of rows) {
    const name = `${row.run} ${row.qps}`
    runs.set(name, [...(runs.get(name) ?? []), row])
  }
  for (const list of runs.values()) {
    const options = optionsOf(list[0].run, list[0].qps)
    if (options === undefined) continue
    addRun(groups, list, replay(sim, list.map(toRequest), options))
  }
  return groups.summary()
}

function toRequest({ arrival_s: arrivalS, prompt_tokens: promptTokens, output_tokens: outputTokens }) {
  return { atMs: arrivalS * 1000, promptTokens, outputTokens: Math.max(1, outputTokens) }
}

function addRun(groups, list, times) {
  const measured = list.map((row) => ({
    ttftMs: row.ttft_s * 1000,
    tpotMs: row.output_tokens > 1 ? (row.generation_s * 1000) / (row.output_tokens - 1) : undefined,
    endedAtMs: (row.arrival_s + row.ttft_s + row.generation_s) * 1000,
  }))
  const medianOf = (all, of) => quantile(all.map(of), 0.5)
  const ttftMs = medianOf(measured, (each) => each.ttftMs)
  const load = ttftMs > SATURATED_TTFT_MS ? 'saturated' : 'below saturation'
  const lastEndMs = (all) => Math.max(...all.map(({ endedAtMs }) => endedAtMs))
  groups.add(
    `TTFT p50, ${load}`,
    ttftMs,
    medianOf(times, (each) => each.ttftMs),
  )
  groups.add(
    `TPOT p50, ${load}`,
    medianOf(measured, (each) => each.tpotMs),
    medianOf(times, (each) => each.tpotMs),
  )
  groups.add(`time to the last answer, ${load}`, lastEndMs(measured), lastEndMs(times))
}
