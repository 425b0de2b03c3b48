/** The engine model in states that a router saw: what came next, there and here. */
import { Groups } from './errors.mjs'

/** Of the answer whose TPOT is simulated: longer than most, so that its mean is steady. */
const ANSWER_TOKENS = 150
/** What the rows say of the queue is what the router believed, so only short queues can be rebuilt. */
const LONGEST_QUEUE = 3
const MODEL_LEN_TOKENS = 16_384

/**
 * Puts an engine into the row's state (`running` equal streams that hold `kv_used` of the cache, the prefill tokens in
 * flight as that many equal prompts), lets the request come at a chance instant of a step, and returns its times.
 * Whatever else came later is not in the row and left out.
 */
function simulateState({ EngineModel }, row, { profile, rng, ...options }) {
  const engine = new EngineModel({ profile, maxModelLenTokens: MODEL_LEN_TOKENS, ...options })
  const contextTokens =
    row.running > 0 ? Math.max(1, Math.round((row.kv_used * profile.kvCapacityTokens) / row.running)) : 0
  const ignore = () => {}
  for (let at = 0; at < row.running; at++) {
    engine.submit({ id: `r${at}`, promptTokens: contextTokens, outputTokens: [ANSWER_TOKENS * 20] }, 0)
  }
  let nowMs = 0
  while (engine.prefillBacklogTokens > 0) {
    nowMs = engine.nextEventAtMs()
    engine.advanceTo(nowMs, ignore)
  }
  if (row.running > 0) nowMs += rng.uniform() * (engine.nextEventAtMs() - nowMs)
  engine.advanceTo(nowMs, ignore)
  const ahead = Math.max(row.waiting, row.prefill_tokens_in_flight > 0 ? 1 : 0)
  for (let at = 0; at < ahead; at++) {
    const promptTokens = Math.max(1, Math.round(row.prefill_tokens_in_flight / ahead))
    engine.submit({ id: `p${at}`, promptTokens, outputTokens: [ANSWER_TOKENS] }, nowMs)
  }
  engine.submit({ id: 'own', promptTokens: row.prompt_tokens, outputTokens: [ANSWER_TOKENS] }, nowMs)
  return timesOf(engine, nowMs)
}

function timesOf(engine, sentAtMs) {
  let firstAtMs
  let lastAtMs
  for (let left = ANSWER_TOKENS; left > 0; ) {
    engine.advanceTo(engine.nextEventAtMs(), ({ emitted, endedAtMs }) => {
      if (!emitted.some(({ requestId }) => requestId === 'own')) return
      firstAtMs ??= endedAtMs
      lastAtMs = endedAtMs
      left--
    })
  }
  return { ttftMs: firstAtMs - sentAtMs, tpotMs: (lastAtMs - firstAtMs) / (ANSWER_TOKENS - 1) }
}

function situation({ waiting, prefill_tokens_in_flight: inFlight, running }) {
  if (waiting > 0 || inFlight > 0) return 'prompts ahead'
  return running > 0 ? 'streams running' : 'idle'
}

/**
 * Errors by situation over the rows that can be rebuilt; the first is the cold start of the run and left out. With
 * `calmOnly` neither TPOT nor what had prompts ahead is compared: where prompts are long and many, later prompts
 * decide the one, and the router's "running" counts requests that still queue in the engine for the other.
 */
export function checkStates(sim, rows, { calmOnly, ...options }) {
  const groups = new Groups()
  const rng = new sim.Rng(1)
  for (const row of rows.slice(1)) {
    const where = situation(row)
    if (row.waiting > LONGEST_QUEUE || (calmOnly && where === 'prompts ahead')) continue
    const { ttftMs, tpotMs } = simulateState(sim, row, { ...options, rng })
    groups.add(`TTFT, ${where}`, row.ttft_ms, ttftMs)
    if (!calmOnly) groups.add('TPOT', row.tpot_ms, tpotMs)
  }
  return groups.summary()
}
