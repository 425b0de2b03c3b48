/** Single values of the file as zod fields: each reads its spelling, checks its range and says what to write instead. */
import { isIP } from 'node:net'
import { z } from 'zod'
import { didYouMean } from './suggest.ts'
import {
  type Parsed,
  parseAddress,
  parseCount,
  parseDuration,
  parseRate,
  parseShare,
  parseSize,
  shown,
} from './units.ts'

/** JSON Schema of a field; `title` names its kind in docs and editors. */
interface FieldShape {
  readonly title: string
  readonly type?: string | string[]
  readonly pattern?: string
  readonly enum?: readonly string[]
  readonly [keyword: string]: unknown
}

const fail = (message: string, suggestion?: string): Parsed<never> =>
  suggestion === undefined ? { ok: false, message } : { ok: false, message, suggestion }

/** Text with a variable in it is checked at load time only, so the editor lets it pass. */
const orVariable = (pattern: string): string => `^(?:${pattern})$|\\$\\{`

function field<T>(shape: FieldShape, parse: (value: unknown) => Parsed<T>) {
  return z
    .unknown()
    .transform((value, context): T => {
      const parsed = parse(value)
      if (parsed.ok) return parsed.value
      context.addIssue({ code: 'custom', message: parsed.message, params: { suggestion: parsed.suggestion } })
      return z.NEVER
    })
    .meta(shape as Record<string, unknown>)
}

interface Range {
  readonly min?: number
  readonly max?: number
  /** How the bounds are written in messages. */
  readonly say: string
}

function within(parsed: Parsed<number>, range: Range | undefined, value: unknown): Parsed<number> {
  if (!parsed.ok || range === undefined) return parsed
  const { min = Number.NEGATIVE_INFINITY, max = Number.POSITIVE_INFINITY } = range
  if (parsed.value >= min && parsed.value <= max) return parsed
  return fail(`${shown(value)} is out of range`, `write ${range.say}`)
}

/** A duration in ms, above 0. `guess` is the unit shown when it was left out. */
export function duration(guess: 'ms' | 's' | 'm' | 'h' | 'd', range?: Range) {
  const bounds = range ?? { min: 0.001, say: 'a time above 0' }
  return field(
    { title: 'duration', type: 'string', pattern: orVariable('\\d+(\\.\\d+)?(ms|s|m|h|d)') },
    (value) => within(parseDuration(value, guess), bounds, value),
  )
}

/** A share between 0 and 1. */
export function share(range?: Range) {
  return field(
    {
      title: 'share',
      type: ['string', 'number'],
      pattern: orVariable('\\d+(\\.\\d+)?%?'),
      minimum: 0,
      maximum: 1,
    },
    (value) => within(parseShare(value), range, value),
  )
}

/** A whole number of things, at least 1 unless the range says otherwise. */
export function count(range?: Range) {
  const bounds = range ?? { min: 1, say: 'a whole number above 0' }
  return field(
    {
      title: 'count',
      type: ['integer', 'string'],
      pattern: orVariable('\\d+(\\.\\d+)?[kMG]?'),
      minimum: bounds.min ?? 0,
    },
    (value) => within(parseCount(value), bounds, value),
  )
}

/** A size in bytes, at least 1. */
export function size() {
  return field(
    { title: 'size', type: 'string', pattern: orVariable('\\d+(\\.\\d+)?([KMGT]i?)?B') },
    (value) => within(parseSize(value), { min: 1, say: 'a size above 0' }, value),
  )
}

/** A rate per second, above 0. */
export function rate() {
  return field(
    { title: 'rate', type: 'string', pattern: orVariable('\\d+(\\.\\d+)?[kMG]?/(s|min|h)') },
    (value) => within(parseRate(value), { min: 1e-9, say: 'a rate above 0' }, value),
  )
}

/** A plain number above 0 without unit: a weight. */
export function weight() {
  return field<number>(
    {
      title: 'number',
      type: ['number', 'string'],
      pattern: orVariable('\\d+(\\.\\d+)?'),
      exclusiveMinimum: 0,
    },
    (value) => {
      const number = typeof value === 'string' && /^\d+(\.\d+)?$/.test(value) ? Number(value) : value
      if (typeof number === 'number' && number > 0 && number <= 1e6) return { ok: true, value: number }
      return fail(`${shown(value)} is not a weight`, 'write a number above 0, such as 1 or 2.5')
    },
  )
}

/** Host and port. */
export function address() {
  return field({ title: 'address', type: 'string', pattern: orVariable('.+:\\d+') }, parseAddress)
}

/** One word out of a list. */
export function oneOf<const W extends string>(words: readonly W[]) {
  return field<W>({ title: words.join(' | '), enum: words }, (value) => {
    const word = words.find((candidate) => candidate === value)
    if (word !== undefined) return { ok: true, value: word }
    if (typeof value !== 'string') return fail(`${shown(value)} is none of ${words.join(', ')}`)
    return fail(`${shown(value)} is none of ${words.join(', ')}`, didYouMean(value, words))
  })
}

/** True or false. */
export function flag() {
  return field<boolean>({ title: 'true | false', type: ['boolean', 'string'] }, (value) => {
    if (value === true || value === 'true') return { ok: true, value: true }
    if (value === false || value === 'false') return { ok: true, value: false }
    return fail(`${shown(value)} is neither true nor false`)
  })
}

interface TextRule {
  readonly title: string
  readonly pattern?: RegExp
  /** What the text must look like, after "write". */
  readonly say: string
  /** Never repeated in a message. */
  readonly secret?: boolean
  readonly mayBeEmpty?: boolean
}

/** A text; numbers and truth values are refused, since YAML read them as something else than was typed. */
export function text(rule: TextRule) {
  const shape: FieldShape = {
    title: rule.title,
    type: 'string',
    ...(rule.pattern && { pattern: orVariable(rule.pattern.source.replace(/^\^|\$$/g, '')) }),
  }
  return field<string>(shape, (value) => {
    if (typeof value === 'number' || typeof value === 'boolean') {
      if (rule.secret) return fail(`YAML reads this as a ${typeof value}, not as text`, 'put it into quotes')
      return fail(`YAML reads ${value} as a ${typeof value}, not as text`, `put it into quotes: "${value}"`)
    }
    if (typeof value !== 'string') return fail(`this must be ${rule.say}`)
    if (value === '' && !rule.mayBeEmpty) return fail('this is empty', `write ${rule.say}`)
    if (value !== '' && rule.pattern !== undefined && !rule.pattern.test(value)) {
      return fail(
        rule.secret ? 'this is malformed' : `${shown(value)} can not be a ${rule.title}`,
        `write ${rule.say}`,
      )
    }
    return { ok: true, value }
  })
}

/** A name that becomes a metric label and a header value. */
export const LABEL_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/
const MODEL_NAME = /^[A-Za-z0-9][^\s"\\]{0,255}$/

export const label = (what: string) =>
  text({ title: 'name', pattern: LABEL_NAME, say: `${what}: letters, digits, . _ and -, 63 at most` })

export const modelName = () =>
  text({
    title: 'name',
    pattern: MODEL_NAME,
    say: 'a name without spaces and quotes, starting with a letter or digit',
  })

/** What a header can carry: a file with a line break at its end would fail at each request, and only there. */
const HEADER_VALUE = /^[!-~](?:[ -~]*[!-~])?$/

export const secret = (what: string) =>
  text({
    title: 'secret',
    pattern: HEADER_VALUE,
    say: `${what}: printable ASCII, with no space or line break at its ends`,
    secret: true,
    mayBeEmpty: true,
  })

export const path = () =>
  text({ title: 'path', pattern: /^\/[A-Za-z0-9._~/-]*$/, say: 'a path that starts with /, such as /rerank' })

/** A sha256 in hex. What else is found there is never repeated: it may be a key. */
export function keyHash() {
  const hint = 'run `sluice key` and paste its key_sha256'
  return field<string>(
    { title: 'sha256', type: 'string', pattern: orVariable('[0-9A-Fa-f]{64}') },
    (value) => {
      if (typeof value === 'number') return fail('YAML reads this hash as a number', 'put it into quotes')
      if (typeof value !== 'string') return fail('this must be the sha256 of a key', hint)
      if (/^<.*>$/.test(value))
        return fail('a placeholder still stands where the hash of a key belongs', hint)
      if (value.startsWith('sk-')) return fail('this is a key itself, and the file wants its sha256', hint)
      if (!/^[0-9A-Fa-f]{64}$/.test(value)) {
        return fail(`a sha256 has 64 hex digits, and this has ${value.length} characters`, hint)
      }
      if (/^(.)\1*$/.test(value) || value.toLowerCase() === EMPTY_SHA256) {
        return fail('this hash is a placeholder: no real key has it', hint)
      }
      return { ok: true, value: value.toLowerCase() }
    },
  )
}

/** The sha256 of nothing, which a script makes of an unset variable. */
const EMPTY_SHA256 = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'

/** A network as CIDR or a single address. */
export function network() {
  return field<string>(
    { title: 'network', type: 'string', pattern: orVariable('[0-9A-Fa-f.:]+(/\\d+)?') },
    (value) => {
      const [ip = '', bits, ...rest] = typeof value === 'string' ? value.split('/') : []
      const family = isIP(ip)
      const longest = family === 4 ? 32 : 128
      const bitsOk = bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= longest)
      if (family !== 0 && bitsOk && rest.length === 0) return { ok: true, value: `${ip}/${bits ?? longest}` }
      return fail(`${shown(value)} is not a network`, 'write for example 10.0.0.0/8 or 192.0.2.7')
    },
  )
}

/** The origin of a server: scheme, host and port, nothing else. Credentials are never repeated. */
export function origin() {
  return field<string>(
    { title: 'url', type: 'string', pattern: orVariable('https?://[^/@?#]+/?') },
    readOrigin,
  )
}

function readOrigin(value: unknown): Parsed<string> {
  const example = 'write for example http://10.0.0.11:8000'
  if (typeof value !== 'string') return fail('a replica is a URL, or a mapping with url or dns', example)
  const safe = shown(value.replace(/\/\/[^/]*@/, '//…@'))
  if (!/^[a-z][a-z0-9+.-]*:\/\//i.test(value)) {
    const guess = /^[A-Za-z0-9._-]+(:\d+)?$/.test(value) ? `write http://${value}` : example
    return fail(`${safe} is not a URL`, guess)
  }
  if (!URL.canParse(value)) return fail(`${safe} is not a URL`, example)
  const url = new URL(value)
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    return fail(`${safe} is neither http nor https`, `write http://${url.host}`)
  }
  if (url.username !== '' || url.password !== '') {
    return fail('credentials do not belong into a URL', `write { url: ${url.origin}, key: "\${ENGINE_KEY}" }`)
  }
  if (url.pathname !== '/' || url.search !== '' || url.hash !== '') {
    return fail(`${safe} has a path, and Sluice adds the paths itself`, `write ${url.origin}`)
  }
  return { ok: true, value: url.origin }
}
