/** What goes wrong in a virtual run, as plain values. */
import type { Ms, Ratio } from '../core/units.ts'

/** When a fault holds: from `fromMs` (default: the start) to `toMs` (default: the end). */
export interface FaultSpan {
  readonly fromMs?: Ms
  readonly toMs?: Ms
}

export type Fault =
  /** The replica's steps take 1/`speedRatio` times as long, e.g. 0.5: twice. */
  | ({ readonly kind: 'slow'; readonly replicaIndex: number; readonly speedRatio: Ratio } & FaultSpan)
  /** The process is gone: open streams break, new ones are refused; an empty one answers from `toMs` on. */
  | ({ readonly kind: 'dead'; readonly replicaIndex: number } & FaultSpan)
  /** Its metrics page answers, always with what it said last. Without `replicaIndex`: all of them. */
  | ({ readonly kind: 'frozenMetrics'; readonly replicaIndex?: number } & FaultSpan)
  /** Its metrics page does not answer. */
  | ({ readonly kind: 'lostMetrics'; readonly replicaIndex?: number } & FaultSpan)
  /** What the metrics pages say reaches the gate that much later. */
  | ({ readonly kind: 'lateMetrics'; readonly lagMs: Ms } & FaultSpan)
  /** Prompts are counted as that many times their true tokens, e.g. 1.2. */
  | ({ readonly kind: 'tokenizerBias'; readonly ratio: Ratio } & FaultSpan)
  /** What the scheduler is told of step times before it starts is that many times the truth. */
  | { readonly kind: 'estimatorBias'; readonly ratio: Ratio }
