/** What the load client means to send: one entry a request, in order of its instant. */
import type { SloClass } from '../core/request.ts'
import type { Ms, Tokens } from '../core/units.ts'

export interface PlannedRequest {
  /** Unique within the run; also makes its prompt unlike any other. */
  readonly id: string
  /** When it is to be sent, in ms after the run's start. */
  readonly atMs: Ms
  /** The part of the run that it counts in, e.g. `2x`. */
  readonly phase: string
  readonly slo: SloClass
  readonly promptTokens: Tokens
  /** Length of the wanted answer, sent as `max_tokens`. */
  readonly outputTokens: Tokens
  /** Tokens at the prompt's start that it shares with every request of the same key. */
  readonly shared?: { readonly key: string; readonly tokens: Tokens }
}

/** A stretch of the run under one load. */
export interface LoadPhase {
  readonly name: string
  readonly durationMs: Ms
  readonly ratePerSec: number
}
