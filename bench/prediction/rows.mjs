/** Reads measured requests: the state that a router saw at dispatch, with the TTFT or the TPOT that followed. */
import { readFileSync } from 'node:fs'
import { gunzipSync } from 'node:zlib'

/** Tokens of KV cache of one replica, from the fitted profile; it only scales what is learnt of contexts. */
const KV_CAPACITY_TOKENS = 257_900

/** Rows in the order of the file. */
export function readRows(path) {
  const bytes = readFileSync(path)
  const text = (path.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString('utf8')
  return path.endsWith('.jsonl') ? parseJsonLines(text) : parseCsv(text)
}

/** As published: a value of 0 stands for none, and each line has one of the two latencies. */
export function parseJsonLines(text) {
  return lines(text).map((line) => {
    const it = JSON.parse(line)
    return row(
      {
        kvRatio: it.kv_cache_percentage,
        promptTokens: it.input_token_length,
        waiting: it.num_request_waiting,
        running: it.num_request_running,
        backlogTokens: it.prefill_tokens_in_flight ?? 0,
      },
      it.actual_ttft_ms,
      it.actual_tpot_ms,
    )
  })
}

export function parseCsv(text) {
  const [head = '', ...rest] = lines(text)
  const names = head.split(',')
  const column = (name) => {
    const index = names.indexOf(name)
    if (index < 0) throw new RangeError(`no column ${name} in: ${head}`)
    return index
  }
  const at = {
    kvRatio: column('kv_used'),
    promptTokens: column('prompt_tokens'),
    waiting: column('waiting'),
    running: column('running'),
    backlogTokens: column('prefill_tokens_in_flight'),
  }
  const [ttft, tpot] = [column('ttft_ms'), column('tpot_ms')]
  return rest.map((line) => {
    const cells = line.split(',').map(Number)
    const state = Object.fromEntries(Object.entries(at).map(([name, index]) => [name, cells[index]]))
    return row(state, cells[ttft], cells[tpot])
  })
}

const lines = (text) => text.split('\n').filter((line) => line.trim() !== '')

/** `running` counts what waits too: with hundreds of them the KV cache would otherwise be full many times over. */
function row({ kvRatio, promptTokens, waiting, running, backlogTokens }, ttftMs, tpotMs) {
  const kind = ttftMs > 0 ? 'ttft' : 'tpot'
  const observedMs = kind === 'ttft' ? ttftMs : tpotMs
  const state = { promptTokens, waiting, running, backlogTokens, contextTokens: kvRatio * KV_CAPACITY_TOKENS }
  if (!(observedMs > 0) || !Object.values(state).every(Number.isFinite))
    throw new RangeError(`a row without latency or state: ${JSON.stringify({ ...state, ttftMs, tpotMs })}`)
  return { kind, observedMs, ...state, sequences: Math.max(0, running - waiting) }
}
