/** Reads measured servers: CSV (gzipped or not), and the JSON lines that llm-d-latency-predictor publishes. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'

/** Text of the first of those files that is there, unpacked; undefined when none is. */
export function textOf(folder, names) {
  const name = names.find((each) => existsSync(join(folder, each)))
  if (name === undefined) return undefined
  const bytes = readFileSync(join(folder, name))
  return { name, text: (name.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString('utf8') }
}

const numberOf = (cell) =>
  cell === '' || cell === undefined || Number.isNaN(Number(cell)) ? cell : Number(cell)

/** One object a line, by the header's names; numbers as numbers, empty cells left out. No quoted cells. */
export function parseCsv(text) {
  const [header = '', ...lines] = text.trim().split(/\r?\n/)
  const names = header.split(',')
  return lines.map((line) => {
    // A quoted cell (a remark with a comma) is kept as one.
    const cells = line.match(/("[^"]*"|[^,]*)(?:,|$)/g).map((cell) => cell.replace(/,$/, ''))
    return Object.fromEntries(
      names.map((name, at) => [name, numberOf(cells[at])]).filter(([, cell]) => cell !== ''),
    )
  })
}

/** Router states with the latency that followed, from either form. In JSON a latency of 0 means none. */
export function parseStates({ name, text }) {
  if (!name.endsWith('.jsonl')) return parseCsv(text)
  return text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
    .map((row) => ({
      kv_used: row.kv_cache_percentage,
      prompt_tokens: row.input_token_length,
      waiting: row.num_request_waiting,
      running: row.num_request_running,
      prefill_tokens_in_flight: row.prefill_tokens_in_flight ?? 0,
      ...(row.actual_ttft_ms > 0 ? { ttft_ms: row.actual_ttft_ms } : {}),
      ...(row.actual_tpot_ms > 0 ? { tpot_ms: row.actual_tpot_ms } : {}),
    }))
}
