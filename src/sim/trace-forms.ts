/** The forms of trace files that can be read: Azure 2023, Mooncake, and plain CSV. */
import type { Ms, Tokens } from '../core/units.ts'
import { readStampMs } from './time-stamp.ts'
import type { LineReader, TraceRow } from './trace-types.ts'

export type TraceForm = 'azure' | 'mooncake' | 'csv'

/** How to read the lines after the first; `readsFirst` when the first is a row as well. */
export interface FormReader {
  readonly form: TraceForm
  readonly readsFirst: boolean
  readonly read: LineReader
}

/** Mooncake's hash ids stand for that many tokens each. */
const MOONCAKE_BLOCK_TOKENS: Tokens = 512

const WANTED =
  'a header with arrival_s, prompt_tokens and output_tokens (plain CSV) or TIMESTAMP, ContextTokens and GeneratedTokens (Azure), or JSON lines with timestamp, input_length and output_length (Mooncake)'

/** The form by the file's first line. Throws a RangeError that says what was expected. */
export function formOf(firstLine: string): FormReader {
  if (firstLine.startsWith('{')) return { form: 'mooncake', readsFirst: true, read: readMooncake }
  const header = firstLine.split(',').map((name) => name.trim())
  const has = (...names: string[]) => names.every((name) => header.includes(name))
  if (has('TIMESTAMP', 'ContextTokens', 'GeneratedTokens')) {
    return { form: 'azure', readsFirst: false, read: (line) => readAzure(cellsOf(line, header)) }
  }
  if (has('arrival_s', 'prompt_tokens', 'output_tokens')) {
    return { form: 'csv', readsFirst: false, read: (line) => readPlain(cellsOf(line, header)) }
  }
  throw new RangeError(`expected ${WANTED}`)
}

type Cells = ReadonlyMap<string, string>

function cellsOf(line: string, header: readonly string[]): Cells {
  if (line.includes('"')) throw new RangeError('quoted cells are not read; write them without quotes')
  const cells = line.split(',')
  if (cells.length !== header.length) {
    throw new RangeError(`expected ${header.length} cells as in the header, found ${cells.length}`)
  }
  return new Map(header.map((name, at) => [name, cells[at]?.trim() ?? '']))
}

function readAzure(cells: Cells): TraceRow {
  const stamp = cells.get('TIMESTAMP') ?? ''
  const atMs = readStampMs(stamp)
  if (atMs === undefined) {
    throw new RangeError(`TIMESTAMP "${stamp}" is no time such as 2023-11-16 18:15:46.6805900`)
  }
  return {
    atMs,
    promptTokens: tokens('ContextTokens', cells.get('ContextTokens'), 1),
    outputTokens: tokens('GeneratedTokens', cells.get('GeneratedTokens'), 0),
  }
}

function readPlain(cells: Cells): TraceRow {
  const { session, thinkMs } = sessionOf(cells)
  const className = cells.get('class')
  const maxTokens = cells.get('max_tokens')
  return {
    atMs: 1000 * number('arrival_s', cells.get('arrival_s')),
    promptTokens: tokens('prompt_tokens', cells.get('prompt_tokens'), 1),
    outputTokens: tokens('output_tokens', cells.get('output_tokens'), 0),
    ...(className ? { className } : {}),
    ...(maxTokens ? { maxTokens: tokens('max_tokens', maxTokens, 1) } : {}),
    ...(session === undefined ? {} : { session }),
    ...(thinkMs === undefined ? {} : { thinkMs }),
  }
}

function sessionOf(cells: Cells): { session?: string; thinkMs?: Ms } {
  const session = cells.get('session')
  const think = cells.get('think_s')
  if (!session || think === undefined) return {}
  if (think === '') return { session }
  const thinkMs = 1000 * number('think_s', think)
  if (thinkMs < 0) throw new RangeError(`think_s must be at least 0, got ${think}`)
  return { session, thinkMs }
}

function readMooncake(line: string): TraceRow {
  const row = parseObject(line)
  const atMs = 'timestamp' in row ? row.timestamp : 1000 * number('arrival_s', row.arrival_s)
  const promptTokens = tokens('input_length', row.input_length ?? row.prompt_tokens, 1)
  const names = row.hash_ids === undefined ? undefined : hashNames(row.hash_ids, promptTokens)
  return {
    atMs: number('timestamp', atMs),
    promptTokens,
    outputTokens: tokens('output_length', row.output_length ?? row.output_tokens, 0),
    ...(names === undefined ? {} : { blocks: { names, tokens: MOONCAKE_BLOCK_TOKENS } }),
  }
}

function parseObject(line: string): Readonly<Record<string, unknown>> {
  let parsed: unknown
  try {
    parsed = JSON.parse(line)
  } catch {
    throw new RangeError('this is no JSON')
  }
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) {
    throw new RangeError('expected a JSON object')
  }
  return parsed as Readonly<Record<string, unknown>>
}

function hashNames(ids: unknown, promptTokens: Tokens): readonly string[] {
  const blocks = Math.ceil(promptTokens / MOONCAKE_BLOCK_TOKENS)
  if (!Array.isArray(ids) || !ids.every(Number.isInteger)) {
    throw new RangeError('hash_ids must be a list of whole numbers')
  }
  if (ids.length < blocks) {
    throw new RangeError(
      `hash_ids names ${ids.length} blocks, but ${promptTokens} tokens have ${blocks} of ${MOONCAKE_BLOCK_TOKENS}`,
    )
  }
  return ids.slice(0, blocks).map(String)
}

function tokens(name: string, value: unknown, least: number): Tokens {
  const count = number(name, value)
  if (Number.isInteger(count) && count >= least) return count
  throw new RangeError(`${name} must be a whole number of at least ${least}, got ${String(value)}`)
}

function number(name: string, value: unknown): number {
  if (value === undefined || value === '') throw new RangeError(`${name} is missing`)
  const parsed = typeof value === 'number' ? value : typeof value === 'string' ? Number(value) : Number.NaN
  if (Number.isFinite(parsed)) return parsed
  throw new RangeError(`${name} must be a number, got ${JSON.stringify(value)}`)
}
