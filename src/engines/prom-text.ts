/** Reads wanted families out of a Prometheus text page in one forward walk; everything else is skipped unread. */
import { isFigure } from './load-page.ts'

/** One sample. `labels` is the raw text between the braces; see `labelOf`. */
export type SampleVisitor = (name: string, labels: string, value: number) => void

const HASH = 0x23
const BACKSLASH = 0x5c
const QUOTE = 0x22
const CLOSE = 0x7d

/** Longest page that is read, in characters; what follows is ignored. */
const PAGE_CAP_CHARS = 4 << 20

/** Wanted families, ready to be found: by two letters of a line first, and only then by the whole name. */
export type Families = ReadonlyMap<number, readonly Family[]>

interface Family {
  /** As it is printed. */
  readonly name: string
  /** As it is visited. */
  readonly as: string
}

/** Behind the common beginning `vllm:`, where names differ. */
const TELLING_AT = 7

function letters(text: string, at: number): number {
  return text.charCodeAt(at) * 256 + (text.charCodeAt(at + TELLING_AT) & 0xff)
}

/**
 * Prepares the names to look for: each as itself, or a pair of the name on the page and the name to visit it as. Those
 * with a colon are also found with an underscore in its place, since some exporters rewrite it. A name of fewer than
 * eight letters throws a RangeError: what follows it on the line would be taken for its telling letter.
 */
export function families(names: readonly (string | readonly [string, string])[]): Families {
  const index = new Map<number, Family[]>()
  for (const entry of names) {
    const [name, as] = typeof entry === 'string' ? [entry, entry] : entry
    if (name.length <= TELLING_AT) throw new RangeError(`family name too short to be found: ${name}`)
    for (const printed of new Set([name, name.replace(':', '_')])) {
      const key = letters(printed, 0)
      index.set(key, [...(index.get(key) ?? []), { name: printed, as }])
    }
  }
  return index
}

/**
 * Calls `visit` for each sample of a wanted family, in page order, in one forward walk that slices nothing else. Values
 * that are no figure of an engine are left out, as are timestamps and exemplars.
 */
export function walkPage(page: string, wanted: Families, visit: SampleVisitor): void {
  const end = Math.min(page.length, PAGE_CAP_CHARS)
  let at = 0
  while (at < end) {
    const candidates = wanted.get(letters(page, at))
    if (candidates !== undefined) readLine(page, at, candidates, visit)
    const lf = page.indexOf('\n', at)
    if (lf < 0) return
    at = lf + 1
  }
}

function readLine(page: string, at: number, candidates: readonly Family[], visit: SampleVisitor): void {
  for (const { name, as } of candidates) {
    const nameEnd = at + name.length
    const next = page.charCodeAt(nameEnd)
    if ((next === 0x7b || next === 0x20 || next === 0x09) && page.startsWith(name, at)) {
      readSample(page, nameEnd, as, visit)
      return
    }
  }
}

/** Reads what follows the name of a sample. */
function readSample(page: string, from: number, as: string, visit: SampleVisitor): void {
  let to = page.indexOf('\n', from)
  if (to < 0) to = page.length
  let at = from
  let labels = ''
  if (page.charCodeAt(at) === 0x7b) {
    const close = labelsEnd(page, at + 1, to)
    if (close < 0) return
    labels = page.slice(at + 1, close)
    at = close + 1
  }
  const value = readValue(page, at, to)
  if (isFigure(value)) visit(as, labels, value)
}

/** The closing brace of a label set; braces and quotes within values don't count. */
function labelsEnd(page: string, from: number, to: number): number {
  let quoted = false
  for (let at = from; at < to; at += 1) {
    const code = page.charCodeAt(at)
    if (code === QUOTE) quoted = !quoted
    else if (quoted && code === BACKSLASH) at += 1
    else if (!quoted && code === CLOSE) return at
  }
  return -1
}

function readValue(page: string, from: number, to: number): number {
  let start = from
  while (start < to && page.charCodeAt(start) <= 0x20) start += 1
  let stop = start
  // The value ends at a space (a timestamp follows), at an exemplar or at the end of the line.
  while (stop < to) {
    const code = page.charCodeAt(stop)
    if (code <= 0x20 || code === HASH) break
    stop += 1
  }
  return stop === start ? Number.NaN : Number(page.slice(start, stop))
}

/** The value of a label, escapes undone; undefined when the set has no such label. */
export function labelOf(labels: string, name: string): string | undefined {
  let at = 0
  while (at < labels.length) {
    const equals = labels.indexOf('="', at)
    if (equals < 0) return undefined
    let close = equals + 2
    while (close < labels.length && labels.charCodeAt(close) !== QUOTE) {
      close += labels.charCodeAt(close) === BACKSLASH ? 2 : 1
    }
    if (labels.slice(at, equals).trim() === name) return unescapeLabel(labels.slice(equals + 2, close))
    at = labels.indexOf(',', close)
    if (at < 0) return undefined
    at += 1
  }
  return undefined
}

function unescapeLabel(value: string): string {
  if (!value.includes('\\')) return value
  return value.replace(/\\(.)/g, (_whole, code: string) => (code === 'n' ? '\n' : code))
}
