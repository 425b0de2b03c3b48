/** Reads the YAML text into plain values and remembers where each of them stands. */
import {
  type Document,
  isAlias,
  isMap,
  isNode,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  parseDocument,
  type Scalar,
  visit,
} from 'yaml'
import { type Environment, interpolate } from './interpolate.ts'
import type { Path } from './problem.ts'

export interface Place {
  readonly line: number
  readonly column: number
}

/** A fault at an offset that is already line and column. */
export interface Fault extends Place {
  readonly path: Path
  readonly message: string
  readonly suggestion?: string
}

/** A text that came out of the environment, beside what stands in the file. */
export interface Filled {
  readonly written: string
  readonly value: string
}

export interface SourceTree {
  /** Plain values, or undefined when the text is no YAML. */
  readonly root: unknown
  readonly faults: readonly Fault[]
  readonly filled: readonly Filled[]
  /** Where the value (or the key) of that path stands; of its nearest ancestor when it does not exist. */
  locate(path: Path, at?: 'key' | 'value'): Place
}

/** Larger files are refused before they are parsed. */
export const MAX_FILE_BYTES = 2 ** 20
/** An alias that unfolds to more nodes than this is an attack or an accident. */
const MAX_ALIASES = 100
const START: Place = { line: 1, column: 1 }

/** Parses, fills variables in and gives plain values. Never throws. */
export function readTree(text: string, env: Environment): SourceTree {
  if (Buffer.byteLength(text) > MAX_FILE_BYTES)
    return broken('the file is larger than 1 MiB, the most that is read')
  try {
    return parse(text, env)
  } catch (error) {
    // The parser is recursive: a megabyte of brackets runs out of stack, an alias bomb out of patience.
    if (error instanceof ReferenceError) return broken('aliases unfold to too many values', 'write them out')
    if (error instanceof RangeError) return broken('the file is nested too deeply')
    return broken('the file is not YAML')
  }
}

function broken(message: string, suggestion?: string): SourceTree {
  const fault: Fault = { ...START, path: [], message, ...(suggestion !== undefined && { suggestion }) }
  return { root: undefined, faults: [fault], filled: [], locate: () => START }
}

function parse(text: string, env: Environment): SourceTree {
  const lines = new LineCounter()
  const document = parseDocument(text, {
    lineCounter: lines,
    prettyErrors: false,
    stringKeys: true,
    // Binaries, sets and dates are no plain values, and no key wants them.
    resolveKnownTags: false,
  })
  const place = (offset: number): Place => {
    const { line, col } = lines.linePos(offset)
    return line === 0 ? START : { line, column: col }
  }
  const unknownTags = document.warnings.filter(({ code }) => code === 'TAG_RESOLVE_FAILED')
  const faults: Fault[] = [...document.errors, ...unknownTags].map((error) => ({
    ...place(error.pos[0]),
    path: [],
    ...sayYamlFault(error.code, error.message),
  }))
  const readable = document.errors.every((error) => error.code === 'DUPLICATE_KEY')
  const filled = readable ? fillIn(document, env, place, faults) : []
  const locate = (path: Path, at: 'key' | 'value' = 'value') => place(offsetOf(document, path, at))
  return {
    root: readable ? document.toJS({ maxAliasCount: MAX_ALIASES }) : undefined,
    faults,
    filled,
    locate,
  }
}

/** Replaces string scalars (not keys) by their filled-in text. */
function fillIn(
  document: Document,
  env: Environment,
  place: (offset: number) => Place,
  faults: Fault[],
): Filled[] {
  const filled: Filled[] = []
  visit(document, {
    Scalar(key, node: Scalar) {
      if (key === 'key' && node.value === '__proto__') {
        faults.push({ ...place(node.range?.[0] ?? 0), path: [], message: 'unknown key "__proto__"' })
      }
      if (key === 'key' || typeof node.value !== 'string') return
      const written = node.value
      const result = interpolate(written, env)
      for (const fault of result.faults) faults.push({ ...place(node.range?.[0] ?? 0), path: [], ...fault })
      if (result.filled && result.faults.length === 0) filled.push({ written, value: result.text })
      node.value = result.text
    },
  })
  return filled
}

/** Where that path stands; where it leads to nothing, the nearest place above it. */
function offsetOf(document: Document, path: Path, at: 'key' | 'value'): number {
  let node: unknown = document.contents
  let offset = startOf(node)
  for (const [depth, name] of path.entries()) {
    const step = stepInto(isAlias(node) ? node.resolve(document) : node, name)
    if (step === undefined) return offset
    if (at === 'key' && depth === path.length - 1) return step.keyOffset
    node = step.node
    offset = step.offset
  }
  return offset
}

/** One step down from a node: what is there, and where it and its key stand. Items of a list have no key. */
function stepInto(
  node: unknown,
  name: string | number,
): { readonly node: unknown; readonly offset: number; readonly keyOffset: number } | undefined {
  if (isSeq(node)) {
    const item = node.items[Number(name)]
    const offset = startOf(item)
    return item === undefined ? undefined : { node: item, offset, keyOffset: offset }
  }
  if (!isMap(node)) return undefined
  const pair = node.items.find(({ key }) => isScalar(key) && String(key.value) === String(name))
  if (pair === undefined) return undefined
  const keyOffset = startOf(pair.key)
  const { value } = pair
  const empty =
    !isNode(value) || (isScalar(value) && value.value === null && value.range?.[0] === value.range?.[1])
  return { node: value, offset: empty ? keyOffset : startOf(value), keyOffset }
}

function startOf(node: unknown): number {
  return (node as Node | null | undefined)?.range?.[0] ?? 0
}

function sayYamlFault(code: string, message: string): { message: string; suggestion?: string } {
  switch (code) {
    case 'DUPLICATE_KEY':
      return { message: 'this key stands twice in the same mapping', suggestion: 'keep one of them' }
    case 'TAB_AS_INDENT':
      return { message: 'a tab is used for indentation', suggestion: 'YAML wants spaces' }
    case 'MULTIPLE_DOCS':
      return { message: 'a second document starts here', suggestion: 'one file holds one; remove the ---' }
    case 'TAG_RESOLVE_FAILED':
      return { message: 'this tag means nothing here', suggestion: 'write the plain value' }
    case 'NON_STRING_KEY':
      return { message: 'this key is not a plain name' }
    default:
      return { message: `not YAML: ${message.charAt(0).toLowerCase()}${message.slice(1)}` }
  }
}
