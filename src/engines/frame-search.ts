/** Looks into frames by byte search alone, since most frames of a stream are never parsed. */
import type { Frame } from './sse.ts'

const QUOTE = 0x22
const BRACKET = 0x5b
const BRACE = 0x7b

/** Where `needle` is within the frame, or -1. */
export function find(frame: Frame, needle: Buffer, from = frame.start): number {
  // A search past the frame would walk over the frames behind it, each time again.
  if (frame.end === frame.bytes.length) return frame.bytes.indexOf(needle, from)
  const at = frame.bytes.subarray(from, frame.end).indexOf(needle)
  return at < 0 ? -1 : at + from
}

function skipSpace(bytes: Buffer, at: number): number {
  let next = at
  while (bytes[next] === 0x20) next += 1
  return next
}

/** Whether a key, quotes included, is followed by a value that is not empty: "x", [x] or {x}. */
export function keyHasValue(frame: Frame, key: Buffer, from = frame.start): boolean {
  const at = find(frame, key, from)
  if (at < 0) return false
  const { bytes } = frame
  const colon = skipSpace(bytes, at + key.length)
  if (bytes[colon] !== 0x3a) return false
  const value = skipSpace(bytes, colon + 1)
  const opener = bytes[value]
  if (opener === QUOTE) return bytes[value + 1] !== QUOTE
  if (opener === BRACKET || opener === BRACE) return bytes[skipSpace(bytes, value + 1)] !== opener + 2
  return false
}

/** The name in the `event:` line that the frame begins with; undefined where it begins otherwise. */
export function eventName(frame: Frame): string | undefined {
  const { bytes, start, end } = frame
  if (bytes[start] !== 0x65 || bytes[start + 5] !== 0x3a) return undefined
  const from = skipSpace(bytes, start + 6)
  let to = from
  while (to < end && bytes[to] !== 0x0a && bytes[to] !== 0x0d) to += 1
  return bytes.toString('latin1', from, to)
}
