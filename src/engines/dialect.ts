/** What a reader of a wire dialect is asked of its frames, and what readers share. */
import type { Usage } from '../core/events.ts'
import { asObject, type Failure } from './failures.ts'
import type { Frame } from './sse.ts'

/** A frame read in full. */
export interface Reading {
  readonly content: boolean
  /** The generation's end: with the end marker all there is to show for the one token of one that stops at once. */
  readonly ends: boolean
  /** Why it ended, as the engine says it. */
  readonly finishReason?: string
  readonly failure?: Failure
  readonly usage?: Usage
  readonly done: boolean
  /** Nothing but usage is in it, so it may be taken out. */
  readonly usageOnly: boolean
  /** The engine itself cut the generation short; it says `abort` when it is going down. */
  readonly aborted: boolean
}

export interface DialectReader {
  /** Whether the frame holds generated output, by byte search alone. May be called for any frame after the first content. */
  looksLikeContent(frame: Frame): boolean
  /** Whether the frame, holding no content, may say anything else of note. */
  worthReading(frame: Frame): boolean
  /** Whether the last content frame may say more than that: usage, or why it is the last. */
  lastWorthReading(frame: Frame): boolean
  read(event: string, data: string): Reading
  /** What a frame too long to look into is taken for, by its beginning. */
  oversized(event: string): { readonly content: boolean; readonly done: boolean }
}

/** Of a frame that says nothing of note. */
export const NOTHING: Reading = { content: false, ends: false, done: false, usageOnly: false, aborted: false }

/** Whether a value is more than an empty string, list or mapping. */
export function filled(value: unknown): boolean {
  if (typeof value === 'string' || Array.isArray(value)) return value.length > 0
  const object = asObject(value)
  return object !== undefined && Object.keys(object).length > 0
}

/** The type of an event: what its data says, else the name on its line. */
export function typeOf(event: string, frame: Readonly<Record<string, unknown>>): string {
  return typeof frame.type === 'string' ? frame.type : event
}
