/** Writes the name that a client asked for into the `model` members of an answer, in place of the engine's own. */
import type { StreamTap } from './adapter.ts'
import { asBuffer } from './sse.ts'

const KEY = Buffer.from('"model"')
const COLON = 0x3a
/** More white space than that around a colon is nobody's JSON. */
const MAX_SPACE_BYTES = 64

/** Names as JSON strings: those that the engine may write, and the one that replaces them. */
export interface ModelRename {
  readonly from: readonly Buffer[]
  readonly to: Buffer
}

/** The rename from any of `names` to `asked`; undefined when there is nothing to rename. */
export function modelRename(names: readonly string[], asked: string): ModelRename | undefined {
  const others = [...new Set(names)].filter((name) => name !== asked)
  if (others.length === 0) return undefined
  const from = others.flatMap((name) => [...new Set([JSON.stringify(name), asciiJson(name)])])
  return { from: from.map((text) => Buffer.from(text)), to: Buffer.from(JSON.stringify(asked)) }
}

/** As encoders print it that keep to ASCII. */
function asciiJson(text: string): string {
  return JSON.stringify(text).replace(
    /[\u0080-\uffff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}

/** Where the value behind a key is, when it is one of the names; `more` when the bytes end before that is certain. */
type Found = { readonly from: number; readonly to: number } | 'more' | undefined

function valueBehind(bytes: Buffer, keyEnd: number, names: readonly Buffer[]): Found {
  const colon = skipSpace(bytes, keyEnd)
  if (colon === bytes.length) return 'more'
  if (bytes[colon] !== COLON) return undefined
  const from = skipSpace(bytes, colon + 1)
  for (const name of names) {
    const rest = bytes.subarray(from, from + name.length)
    if (rest.equals(name)) return { from, to: from + name.length }
    if (from + rest.length === bytes.length && rest.equals(name.subarray(0, rest.length))) return 'more'
  }
  return undefined
}

function skipSpace(bytes: Buffer, at: number): number {
  let next = at
  while (next < bytes.length && next - at < MAX_SPACE_BYTES && (bytes[next] ?? 0) <= 0x20) next += 1
  return next
}

/** How many bytes at the end may be the beginning of a key. */
function keyBegun(bytes: Buffer): number {
  for (let length = Math.min(KEY.length - 1, bytes.length); length > 0; length -= 1) {
    if (bytes.subarray(bytes.length - length).equals(KEY.subarray(0, length))) return length
  }
  return 0
}

/**
 * Renames in bytes cut anywhere. Within a JSON string a quote is escaped, so that what looks like the member is the
 * member. Held back is at most the beginning of one that the bytes cut in two.
 */
export class ModelRenamer {
  readonly #rename: ModelRename
  #held: Buffer = Buffer.alloc(0)

  constructor(rename: ModelRename) {
    this.#rename = rename
  }

  get holds(): boolean {
    return this.#held.length > 0
  }

  feed(piece: Uint8Array): readonly Uint8Array[] {
    const bytes = this.holds ? Buffer.concat([this.#held, piece]) : asBuffer(piece)
    this.#held = Buffer.alloc(0)
    const out: Buffer[] = []
    let passed = 0
    let end = bytes.length
    for (let at = bytes.indexOf(KEY); at >= 0; at = bytes.indexOf(KEY, at + KEY.length)) {
      const found = valueBehind(bytes, at + KEY.length, this.#rename.from)
      if (found === undefined) continue
      if (found === 'more') {
        end = at
        break
      }
      out.push(bytes.subarray(passed, found.from), this.#rename.to)
      passed = found.to
    }
    if (end === bytes.length) end = Math.max(passed, end - keyBegun(bytes))
    if (end > passed) out.push(bytes.subarray(passed, end))
    this.#held = bytes.subarray(end)
    return out
  }

  /** A body that is there as a whole. */
  whole(body: Uint8Array): Uint8Array {
    return Buffer.concat([...this.feed(body), ...this.end()])
  }

  /** What was held back. */
  end(): readonly Uint8Array[] {
    const rest = this.#held
    this.#held = Buffer.alloc(0)
    return rest.length === 0 ? [] : [rest]
  }
}

/** The tap with its bytes renamed on their way out. */
export function renamingTap(tap: StreamTap, rename: ModelRename): StreamTap {
  const renamer = new ModelRenamer(rename)
  return {
    feed(bytes) {
      const { pass, event } = tap.feed(bytes)
      return { pass: pass.flatMap((piece) => renamer.feed(piece)), event }
    },
    end() {
      const { pass, event } = tap.end()
      return { pass: [...pass.flatMap((piece) => renamer.feed(piece)), ...renamer.end()], event }
    },
    get finishReason() {
      return tap.finishReason
    },
    get generationEnded() {
      return tap.generationEnded
    },
    get betweenFrames() {
      return tap.betweenFrames && !renamer.holds
    },
  }
}
