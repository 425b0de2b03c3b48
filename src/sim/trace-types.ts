/** What a line of a trace file says, whatever form the file has. */
import type { Ms, Tokens } from '../core/units.ts'

export interface TraceRow {
  /** By the file's own clock. */
  readonly atMs: Ms
  readonly promptTokens: Tokens
  /** 0 marks a request that failed. */
  readonly outputTokens: Tokens
  /** Absent where the file does not say. */
  readonly className?: string
  readonly maxTokens?: Tokens
  /** The conversation that it belongs to, and how long after the answer before it was sent. */
  readonly session?: string
  readonly thinkMs?: Ms
  /** Names of the prompt's blocks, in order; equal leading names are equal text. */
  readonly blocks?: { readonly names: readonly string[]; readonly tokens: Tokens }
}

/** Turns one line into a row. Throws a RangeError that says what is wrong with it. */
export type LineReader = (line: string) => TraceRow
