/** What goes wrong in a virtual run, as plain values. */
import type { Ms, Ratio } from '../core/units.ts'
import type { StepPrior } from '../estimate/step-model.ts'

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

type FaultOf<Kind extends Fault['kind']> = Extract<Fault, { kind: Kind }>

/** The instants at which a replica slows down, dies or recovers. */
export function turnsOfFate(
  faults: readonly Fault[],
): readonly { readonly atMs: Ms; readonly replicaIndex: number }[] {
  return faults.flatMap((fault) => {
    if (fault.kind !== 'slow' && fault.kind !== 'dead') return []
    const { replicaIndex, fromMs = 0, toMs } = fault
    return [fromMs, ...(toMs === undefined ? [] : [toMs])].map((atMs) => ({ atMs, replicaIndex }))
  })
}

export function isDead(faults: readonly Fault[], replicaIndex: number, nowMs: Ms): boolean {
  return holding(faults, 'dead', nowMs).some((fault) => fault.replicaIndex === replicaIndex)
}

/** How fast the replica's steps are, in times of what its engine would do. */
export function speedRatioOf(faults: readonly Fault[], replicaIndex: number, nowMs: Ms): Ratio {
  const slow = holding(faults, 'slow', nowMs).filter((fault) => fault.replicaIndex === replicaIndex)
  return slow.reduce((product, { speedRatio }) => product * speedRatio, 1)
}

/** What a reader of the replica's metrics page finds. */
export function pageOf(
  faults: readonly Fault[],
  replicaIndex: number,
  nowMs: Ms,
): 'fresh' | 'frozen' | 'lost' {
  const concerns = (fault: { readonly replicaIndex?: number }) =>
    fault.replicaIndex === undefined || fault.replicaIndex === replicaIndex
  if (holding(faults, 'lostMetrics', nowMs).some(concerns)) return 'lost'
  return holding(faults, 'frozenMetrics', nowMs).some(concerns) ? 'frozen' : 'fresh'
}

/** How much later than usual the metrics pages are known. */
export function metricsLagMs(faults: readonly Fault[], nowMs: Ms): Ms {
  return holding(faults, 'lateMetrics', nowMs).reduce((sum, { lagMs }) => sum + lagMs, 0)
}

/** Counted over true prompt tokens. */
export function countRatio(faults: readonly Fault[], nowMs: Ms): Ratio {
  return holding(faults, 'tokenizerBias', nowMs).reduce((product, { ratio }) => product * ratio, 1)
}

/** The prior that a scheduler is given when the truth would be `prior`. */
export function biasedPrior(prior: StepPrior, faults: readonly Fault[]): StepPrior {
  const ratio = faults.reduce((product, fault) => {
    return fault.kind === 'estimatorBias' ? product * fault.ratio : product
  }, 1)
  return {
    baseMs: prior.baseMs * ratio,
    perSequenceMs: prior.perSequenceMs * ratio,
    perContextTokenMs: prior.perContextTokenMs * ratio,
    perChunkMs: prior.perChunkMs * ratio,
    perPrefillTokenMs: prior.perPrefillTokenMs * ratio,
    perPairMs: prior.perPairMs * ratio,
    requestOverheadMs: prior.requestOverheadMs * ratio,
    uncertaintyRatio: prior.uncertaintyRatio,
  }
}

/** Throws a RangeError for a fault that makes no sense in a fleet of that many replicas. */
export function checkFaults(faults: readonly Fault[], replicas: number): void {
  for (const fault of faults) {
    if ('replicaIndex' in fault && fault.replicaIndex !== undefined && !(fault.replicaIndex < replicas)) {
      throw new RangeError(
        `the fault "${fault.kind}" is for replica ${fault.replicaIndex}, of which there are ${replicas}, counted from 0`,
      )
    }
    const ratio = 'speedRatio' in fault ? fault.speedRatio : 'ratio' in fault ? fault.ratio : 1
    if (!(ratio > 0)) throw new RangeError(`the fault "${fault.kind}" needs a ratio above 0, got ${ratio}`)
  }
}

function holding<Kind extends Fault['kind']>(
  faults: readonly Fault[],
  kind: Kind,
  nowMs: Ms,
): readonly FaultOf<Kind>[] {
  return faults.filter((fault): fault is FaultOf<Kind> => fault.kind === kind && spans(fault, nowMs))
}

function spans(fault: FaultSpan & { readonly kind: string }, nowMs: Ms): boolean {
  const { fromMs = 0, toMs = Number.POSITIVE_INFINITY } = fault
  return nowMs >= fromMs && nowMs < toMs
}
