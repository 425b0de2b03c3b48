/** Changes top-level members of a JSON object in the client's own bytes; what is not changed is not even copied. */
import type { BodyEdits } from './adapter.ts'
import { asBuffer } from './sse.ts'

const QUOTE = 0x22
const BACKSLASH = 0x5c
const COMMA = 0x2c
const COLON = 0x3a
const OPEN = 0x7b
const CLOSE = 0x7d

/** A top-level member: where its key and its value lie. */
interface Member {
  readonly key: string
  readonly keyAt: number
  readonly valueAt: number
  readonly valueEnd: number
}

function malformed(at: number): RangeError {
  return new RangeError(`the body is no JSON object: unexpected byte at offset ${at}`)
}

function skipSpace(bytes: Buffer, from: number): number {
  let at = from
  for (;;) {
    const byte = bytes[at]
    if (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) return at
    at += 1
  }
}

/** Just behind the string that begins at `from`; found by native search, since most of a body is text. */
function stringEnd(bytes: Buffer, from: number): number {
  let at = from + 1
  for (;;) {
    const quote = bytes.indexOf(QUOTE, at)
    if (quote < 0) throw malformed(bytes.length)
    let before = quote
    while (bytes[before - 1] === BACKSLASH) before -= 1
    if ((quote - before) % 2 === 0) return quote + 1
    at = quote + 1
  }
}

/** Just behind the value that begins at `from`. */
function valueEnd(bytes: Buffer, from: number): number {
  let at = from
  let depth = 0
  while (at < bytes.length) {
    const byte = bytes[at]
    if (byte === QUOTE) {
      at = stringEnd(bytes, at)
      if (depth === 0) return at
      continue
    }
    if (byte === OPEN || byte === 0x5b) depth += 1
    else if (byte === CLOSE || byte === 0x5d) {
      // Of a number or a word the end is what follows it.
      if (depth === 0) return at
      depth -= 1
      if (depth === 0) return at + 1
    } else if (
      depth === 0 &&
      (byte === COMMA || byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09)
    ) {
      return at
    }
    at += 1
  }
  throw malformed(at)
}

/** Every top-level member in order, duplicates included, and where the object's first brace is. */
function scan(bytes: Buffer): { readonly openAt: number; readonly members: readonly Member[] } {
  const openAt = skipSpace(bytes, 0)
  if (bytes[openAt] !== OPEN) throw malformed(openAt)
  const members: Member[] = []
  let at = skipSpace(bytes, openAt + 1)
  while (bytes[at] !== CLOSE) {
    if (bytes[at] !== QUOTE) throw malformed(at)
    const keyAt = at
    const keyEnd = stringEnd(bytes, keyAt)
    at = skipSpace(bytes, keyEnd)
    if (bytes[at] !== COLON) throw malformed(at)
    const valueAt = skipSpace(bytes, at + 1)
    const end = valueEnd(bytes, valueAt)
    if (end === valueAt) throw malformed(valueAt)
    members.push({ key: keyText(bytes, keyAt, keyEnd), keyAt, valueAt, valueEnd: end })
    at = skipSpace(bytes, end)
    if (bytes[at] === COMMA) at = skipSpace(bytes, at + 1)
    else if (bytes[at] !== CLOSE) throw malformed(at)
  }
  return { openAt, members }
}

/** The key as JSON means it: `"mod\u0065l"` is `model` too. */
function keyText(bytes: Buffer, at: number, end: number): string {
  const text = bytes.toString('utf8', at, end)
  return text.includes('\\') ? (JSON.parse(text) as string) : text.slice(1, -1)
}

/** A stretch of the body that gives way to other text. */
interface Cut {
  readonly from: number
  readonly to: number
  readonly text: string
}

function cutsFor(members: readonly Member[], edits: BodyEdits): Cut[] {
  const cuts: Cut[] = []
  let keptEnd: number | undefined
  members.forEach((member, index) => {
    const edited = Object.hasOwn(edits, member.key)
    const text = edited ? edits[member.key] : undefined
    if (!edited) {
      keptEnd = member.valueEnd
    } else if (text !== undefined) {
      cuts.push({ from: member.valueAt, to: member.valueEnd, text })
      keptEnd = member.valueEnd
    } else if (keptEnd !== undefined) {
      // With a member before it, the comma between them goes along.
      cuts.push({ from: keptEnd, to: member.valueEnd, text: '' })
    } else {
      cuts.push({ from: member.keyAt, to: members[index + 1]?.keyAt ?? member.valueEnd, text: '' })
    }
  })
  return cuts
}

/** Text for the members that are not there yet, to be put right behind the first brace. */
function inserted(members: readonly Member[], edits: BodyEdits): string {
  const present = new Set(members.map((member) => member.key))
  const fresh = Object.entries(edits).filter(([key, text]) => text !== undefined && !present.has(key))
  if (fresh.length === 0) return ''
  const left = members.some((member) => !Object.hasOwn(edits, member.key) || edits[member.key] !== undefined)
  const text = fresh.map(([key, value]) => `${JSON.stringify(key)}:${value}`).join(',')
  return left ? `${text},` : text
}

/**
 * The body with its top-level members set to the given JSON texts, or removed where undefined. Of a repeated key every
 * occurrence is changed, since parsers differ in which one they take. Returned are slices of `body` and the new texts
 * between them. Throws a RangeError when `body` is no JSON object; callers have parsed it before.
 */
export function spliceBody(body: Uint8Array, edits: BodyEdits): readonly Uint8Array[] {
  if (Object.keys(edits).length === 0) return [body]
  const bytes = asBuffer(body)
  const { openAt, members } = scan(bytes)
  const cuts = cutsFor(members, edits)
  const front = inserted(members, edits)
  if (front !== '') cuts.unshift({ from: openAt + 1, to: openAt + 1, text: front })
  if (cuts.length === 0) return [body]
  const pieces: Uint8Array[] = []
  let at = 0
  for (const cut of cuts) {
    if (cut.from > at) pieces.push(bytes.subarray(at, cut.from))
    if (cut.text !== '') pieces.push(Buffer.from(cut.text))
    at = cut.to
  }
  if (at < bytes.length) pieces.push(bytes.subarray(at))
  return pieces
}
