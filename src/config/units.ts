/** Reads and writes the amounts that people put into the file: durations, shares, counts, sizes, rates, addresses. */
import type { Address } from './config.ts'

/** What a text means, or why it means nothing and how to spell it. */
export type Parsed<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly message: string; readonly suggestion?: string }

/** One kind of amount: a number with a unit out of a table. */
interface UnitTable {
  readonly what: string
  /** Unit → its worth in the base unit, smallest first. */
  readonly units: Readonly<Record<string, number>>
  /** Spellings that people try, by their lower case → the right unit. */
  readonly aliases: Readonly<Record<string, string>>
  readonly example: string
  /** Amounts are rounded to this many per base unit, so that 1.1s is 1100 ms and not a hair more. */
  readonly steps: number
}

const DURATION: UnitTable = {
  what: 'duration',
  units: { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 },
  aliases: {
    msec: 'ms',
    millis: 'ms',
    sec: 's',
    secs: 's',
    second: 's',
    seconds: 's',
    min: 'm',
    mins: 'm',
    minute: 'm',
    minutes: 'm',
    hr: 'h',
    hour: 'h',
    hours: 'h',
    day: 'd',
    days: 'd',
  },
  example: '500ms, 20s, 10m, 1h or 30d',
  steps: 1000,
}

const SIZE: UnitTable = {
  what: 'size',
  units: {
    B: 1,
    KB: 1e3,
    KiB: 2 ** 10,
    MB: 1e6,
    MiB: 2 ** 20,
    GB: 1e9,
    GiB: 2 ** 30,
    TB: 1e12,
    TiB: 2 ** 40,
  },
  aliases: {
    b: 'B',
    bytes: 'B',
    k: 'KiB',
    kb: 'KB',
    ki: 'KiB',
    kib: 'KiB',
    m: 'MiB',
    mb: 'MB',
    mi: 'MiB',
    mib: 'MiB',
    g: 'GiB',
    gb: 'GB',
    gi: 'GiB',
    gib: 'GiB',
    t: 'TiB',
    tb: 'TB',
    ti: 'TiB',
    tib: 'TiB',
  },
  example: '32MiB, 1GiB or 10MB',
  steps: 1,
}

const COUNT: UnitTable = {
  what: 'count',
  units: { '': 1, k: 1e3, M: 1e6, G: 1e9 },
  aliases: { m: 'M', g: 'G', b: 'G', mio: 'M', million: 'M' },
  example: '2000, 500k or 8M',
  steps: 1,
}

const AMOUNT = /^(\d+(?:\.\d+)?)([A-Za-z]*)$/
/** Amounts beyond this are typing errors. */
const LARGEST = Number.MAX_SAFE_INTEGER

/** Puts text into quotes for a message, cut to a length that fits a line. */
export function shown(value: unknown): string {
  const text = JSON.stringify(
    typeof value === 'string' && value.length > 60 ? `${value.slice(0, 57)}...` : value,
  )
  return text ?? String(value)
}

/** An own entry of a table; a name such as `constructor` finds nothing. */
function entry<T>(table: Readonly<Record<string, T>>, name: string): T | undefined {
  return Object.hasOwn(table, name) ? table[name] : undefined
}

function readAmount(text: string, table: UnitTable): number | undefined {
  const match = AMOUNT.exec(text)
  const worth = match === null ? undefined : entry(table.units, match[2] ?? '')
  if (match === null || worth === undefined) return undefined
  const value = Math.round(Number(match[1]) * worth * table.steps) / table.steps
  return value <= LARGEST ? value : undefined
}

/** Finds the right spelling of what was probably meant, or undefined. */
function respell(text: string, table: UnitTable): string | undefined {
  const match = AMOUNT.exec(text.replace(/[\s_,]+/g, ''))
  if (match === null) return undefined
  const unit = match[2] ?? ''
  const lower = unit.toLowerCase()
  const guess = [unit, entry(table.aliases, lower), lower].find(
    (name) => name !== undefined && Object.hasOwn(table.units, name),
  )
  const spelt = guess === undefined ? undefined : `${match[1]}${guess}`
  return spelt !== undefined && readAmount(spelt, table) !== undefined ? spelt : undefined
}

function wrongAmount(value: unknown, table: UnitTable): Parsed<never> {
  const spelt = typeof value === 'string' ? respell(value, table) : undefined
  const suggestion = spelt === undefined ? `write for example ${table.example}` : `write ${spelt}`
  return { ok: false, message: `${shown(value)} is not a ${table.what}`, suggestion }
}

function withoutUnit(value: number | string, table: UnitTable, guess: string): Parsed<never> {
  const spelt = `${value}${guess}`
  return {
    ok: false,
    message: `${shown(value)} has no unit, and a ${table.what} needs one`,
    suggestion: `write ${readAmount(spelt, table) === undefined ? `for example ${table.example}` : spelt}`,
  }
}

const isBare = (value: unknown): value is number | string =>
  typeof value === 'number' || (typeof value === 'string' && /^-?\d+(\.\d+)?$/.test(value))

/** Reads `500ms`, `20s`, `10m`, `1h`, `30d` into ms. `guess` is the unit shown to someone who left it out. */
export function parseDuration(value: unknown, guess = 's'): Parsed<number> {
  if (isBare(value)) return withoutUnit(value, DURATION, guess)
  const ms = typeof value === 'string' ? readAmount(value, DURATION) : undefined
  return ms === undefined ? wrongAmount(value, DURATION) : { ok: true, value: ms }
}

/** Reads `32MiB`, `1GiB`, `10MB` into bytes. */
export function parseSize(value: unknown): Parsed<number> {
  if (isBare(value)) return withoutUnit(value, SIZE, Number(value) >= 4096 ? 'B' : 'MiB')
  const bytes = typeof value === 'string' ? readAmount(value, SIZE) : undefined
  return bytes === undefined ? wrongAmount(value, SIZE) : { ok: true, value: bytes }
}

/** Reads `2000`, `500k`, `8M` into a whole number. */
export function parseCount(value: unknown): Parsed<number> {
  const text = typeof value === 'number' ? String(value) : value
  const match = typeof text === 'string' ? AMOUNT.exec(text) : null
  const worth = match === null ? undefined : entry(COUNT.units, match[2] ?? '')
  const exact = match === null || worth === undefined ? Number.NaN : Number(match[1]) * worth
  // 1.1k is 1100.0000000000002 in binary; a fraction that is really there is far larger than that.
  const count = Math.round(exact)
  if (Number.isNaN(exact) || count > LARGEST || Math.abs(exact - count) > 1e-6)
    return wrongAmount(value, COUNT)
  return { ok: true, value: count }
}

/** Reads `99%` or `0.99` into a share between 0 and 1. */
export function parseShare(value: unknown): Parsed<number> {
  const text = typeof value === 'number' ? String(value) : value
  const match = typeof text === 'string' ? /^(\d+(?:\.\d+)?)(%?)$/.exec(text) : null
  if (match === null) {
    return {
      ok: false,
      message: `${shown(value)} is not a share`,
      suggestion: 'write for example 99% or 0.99',
    }
  }
  const number = Number(match[1])
  // Moving the point in the text keeps 29.1355% equal to 0.291355, which dividing by 100 would not.
  const share = match[2] === '%' ? Number(`${match[1]}e-2`) : number
  if (share <= 1) return { ok: true, value: share }
  const suggestion = match[2] === '' && number <= 100 ? `write ${match[1]}%` : 'write for example 99% or 0.99'
  return { ok: false, message: `${shown(value)} is more than the whole`, suggestion }
}

const PERIODS_SEC: Readonly<Record<string, number>> = { s: 1, min: 60, h: 3600 }
const PERIOD_ALIASES: Readonly<Record<string, string>> = {
  sec: 's',
  second: 's',
  m: 'min',
  minute: 'min',
  hour: 'h',
}

/** Reads `50/s`, `500k/min`, `1M/h` into an amount per second. */
export function parseRate(value: unknown): Parsed<number> {
  const example = 'write for example 50/s or 500k/min'
  if (isBare(value)) {
    const suggestion = Number(value) > 0 ? `write ${value}/s or ${value}/min` : example
    return { ok: false, message: `${shown(value)} has no unit, and a rate needs one`, suggestion }
  }
  const [amount = '', period = '', ...rest] = typeof value === 'string' ? value.split('/') : []
  const count = parseCount(amount)
  if (count.ok && rest.length === 0) {
    const periodSec = entry(PERIODS_SEC, period)
    if (periodSec !== undefined) return { ok: true, value: count.value / periodSec }
    const alias = entry(PERIOD_ALIASES, period.trim().toLowerCase())
    if (alias !== undefined) {
      return { ok: false, message: `${shown(value)} is not a rate`, suggestion: `write ${amount}/${alias}` }
    }
  }
  return { ok: false, message: `${shown(value)} is not a rate`, suggestion: example }
}

/** Reads `0.0.0.0:8080`, `localhost:9090` or `[::1]:9090`. Port 0 takes any free one. */
export function parseAddress(value: unknown): Parsed<Address> {
  const match =
    typeof value === 'string' ? /^(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9._-]+)):(\d{1,5})$/.exec(value) : null
  const port = Number(match?.[3])
  const host = match?.[1] ?? match?.[2]
  if (match !== null && host !== undefined && port <= 65_535) return { ok: true, value: { host, port } }
  const bare = /^:?(\d{1,5})$/.exec(String(value))
  const suggestion =
    bare && Number(bare[1]) <= 65_535
      ? `write 127.0.0.1:${bare[1]}, or 0.0.0.0:${bare[1]} for every interface`
      : 'write for example 0.0.0.0:8080, 127.0.0.1:9090 or "[::1]:9090"'
  return { ok: false, message: `${shown(value)} is not an address with a port`, suggestion }
}

/** Writes ms with the largest unit that divides them. */
export function formatDuration(ms: number): string {
  return formatAmount(ms, DURATION)
}

/** Writes bytes with the largest unit that divides them. */
export function formatSize(bytes: number): string {
  return formatAmount(bytes, SIZE)
}

/** Writes a count with the largest suffix that divides it. */
export function formatCount(count: number): string {
  return formatAmount(count, COUNT)
}

/** Writes a share in percent with as few digits as say it exactly. */
export function formatShare(share: number): string {
  return `${Number((share * 100).toFixed(10))}%`
}

/** Writes an address as the file does. */
export function formatAddress({ host, port }: Address): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
}

function formatAmount(amount: number, table: UnitTable): string {
  const byWorth = Object.entries(table.units).sort(([, a], [, b]) => b - a)
  const fitting = byWorth.find(([, worth]) => amount >= worth && amount % worth === 0)
  const [unit, worth] = fitting ?? byWorth.at(-1) ?? ['', 1]
  return `${amount / worth}${unit}`
}
