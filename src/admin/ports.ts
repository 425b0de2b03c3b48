/** What the admin port is given to show and to ask: plain functions, so that it can be tested without the rest. */
import type { Ms, Tokens } from '../core/units.ts'
import type { Observer } from '../telemetry/observer.ts'
import type { SamplePorts } from '../telemetry/samples.ts'
import type { LearntState } from './learnt-json.ts'

export type ReloadResult =
  | { readonly ok: true; readonly digest: string; readonly changes?: readonly string[] }
  /** The old configuration goes on; `problems` say what to mend, with file, line and column. */
  | { readonly ok: false; readonly problems: readonly string[] }

/** What waits of one class. */
export interface ClassWaiting {
  readonly class: string
  readonly requests: number
  readonly tokens: Tokens
  /** How long the one that came first has waited. */
  readonly oldestMs: Ms
}

export interface AdminPorts {
  readonly observer: Observer
  readonly samples: SamplePorts
  /** The waiting room by class; classes of whom nobody waits are left out. */
  readonly waitingByClass: () => readonly ClassWaiting[]
  readonly version: string
  /** The mode in force. */
  readonly mode: () => string
  readonly configDigest: () => string
  /** True from the first valid configuration on. */
  readonly configLoaded: () => boolean
  /** True from the first signal to stop on. */
  readonly draining: () => boolean
  /** What guards reload and /decisions; undefined when nothing does. */
  readonly token: () => string | undefined
  readonly reload: () => Promise<ReloadResult>
  /** What the scheduler that predicts has learnt; null where none predicts. */
  readonly predictor: () => LearntState | null
  /** What that says of the engines' settings and of the promises, by model, as plain JSON. */
  readonly advice: () => readonly object[]
  /** Monotonic, in ms, as the observer has it. */
  readonly nowMs: () => Ms
  /** Wall clock in Unix ms. */
  readonly unixMs: () => Ms
}
