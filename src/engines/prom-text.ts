/** Reads wanted families out of a Prometheus text page in one forward walk; everything else is skipped unread. */

/** One sample. `labels` is the raw text between the braces; see `labelOf`. */
export type SampleVisitor = (name: string, labels: string, value: number) => void

const LF = 0x0a
const HASH = 0x23
const BACKSLASH = 0x5c
const QUOTE = 0x22
const CLOSE = 0x7d

/** Longest page that is read, in characters; what follows is ignored. */
export const PAGE_CAP_CHARS = 4 << 20

/**
 * Calls `visit` for each sample whose family is wanted, in page order. Names are normalised first (`vllm_x` is
 * `vllm:x`, since some exporters rewrite the colon). Values that are no finite number are left out, as are timestamps
 * and exemplars. `wanted` maps the normalised name to itself or to another name.
 */
export function walkPage(page: string, wanted: ReadonlyMap<string, string>, visit: SampleVisitor): void {
  const end = Math.min(page.length, PAGE_CAP_CHARS)
  const initials = new Set<number>()
  for (const name of wanted.keys()) initials.add(name.charCodeAt(0))
  let at = 0
  while (at < end) {
    let stop = page.indexOf('\n', at)
    if (stop < 0 || stop > end) stop = end
    if (initials.has(page.charCodeAt(at))) readLine(page, at, stop, wanted, visit)
    at = stop + 1
  }
}

function readLine(
  page: string,
  from: number,
  to: number,
  wanted: ReadonlyMap<string, string>,
  visit: SampleVisitor,
): void {
  let at = from
  while (at < to) {
    const code = page.charCodeAt(at)
    if (code === 0x7b || code === 0x20 || code === 0x09) break
    at += 1
  }
  const name = wanted.get(normalName(page.slice(from, at)))
  if (name === undefined) return
  let labels = ''
  if (page.charCodeAt(at) === 0x7b) {
    const close = labelsEnd(page, at + 1, to)
    if (close < 0) return
    labels = page.slice(at + 1, close)
    at = close + 1
  }
  const value = readValue(page, at, to)
  if (Number.isFinite(value)) visit(name, labels, value)
}

/** Some exporters print `vllm_num…` for `vllm:num…`. */
function normalName(name: string): string {
  const cut = name.startsWith('vllm_')
    ? 4
    : name.startsWith('sglang_')
      ? 6
      : name.startsWith('llamacpp_')
        ? 8
        : -1
  return cut < 0 ? name : `${name.slice(0, cut)}:${name.slice(cut + 1)}`
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
    if (code <= 0x20 || code === HASH || code === LF) break
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
