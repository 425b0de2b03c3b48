/** What a simulation of the last minutes says of enforcing, while a shadow only watches: an estimate, never a measurement. */
import type { Ms, Ratio } from '../core/units.ts'

/** The same requests of one class: as they ended, and as they would have in a simulation that sheds nothing or enforces. */
export interface EstimatedClass {
  readonly model: string
  readonly class: string
  /** How many of them count. */
  readonly requests: number
  readonly measuredRatio?: Ratio
  /** Simulated as it was run: how far it is from `measuredRatio` is how far the estimate may be off. */
  readonly shadowRatio?: Ratio
  /** Simulated with enforcing. */
  readonly enforcedRatio?: Ratio
}

export interface ShadowEstimate {
  /** When it was made, on the clock of the records, and how long the simulated requests took to come. */
  readonly atMs: Ms
  readonly spanMs: Ms
  readonly classes: readonly EstimatedClass[]
}
