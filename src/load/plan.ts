/** What the load client means to send: one entry a request, in order of its instant. */
import type { SloClass } from '../core/request.ts'
import type { Ms, Ratio, Tokens } from '../core/units.ts'
import { generateWorkload } from '../sim/workload.ts'
import type { WorkloadClass } from '../sim/workload-types.ts'
import { WORKLOADS } from '../sim/workloads.ts'

export interface PlannedRequest {
  /** Unique within the run; also makes its prompt unlike any other. */
  readonly id: string
  /** When it is to be sent, in ms after the run's start. */
  readonly atMs: Ms
  /** The part of the run that it counts in, e.g. `2x`. */
  readonly phase: string
  readonly slo: SloClass
  readonly promptTokens: Tokens
  /** The client's cap on the answer, sent as `max_tokens`. */
  readonly maxTokens: Tokens
  /** Where the answer is meant to end; only simulated engines and exact lengths heed it. */
  readonly outputTokens: Tokens
  /** Tokens at the prompt's start that it shares with every request of the same key. */
  readonly shared?: { readonly key: string; readonly tokens: Tokens }
}

/** A stretch of the run under one steady load. */
export interface LoadPhase {
  readonly name: string
  readonly durationMs: Ms
  readonly ratePerSec: number
}

export interface PlanOptions {
  readonly seed: number
  readonly phases: readonly LoadPhase[]
  /** The promises to judge by, by class name; must hold each class of the mix. */
  readonly classes: Readonly<Record<string, SloClass>>
  /** Default: the five workloads as they come. */
  readonly mix?: readonly WorkloadClass[]
  /** Every length times this; default 1. */
  readonly lengthRatio?: Ratio
}

/** The seeded arrivals of all phases, lazily. Throws a RangeError for a class of the mix without a promise. */
export function* planLoad(options: PlanOptions): Generator<PlannedRequest, void, undefined> {
  const { seed, phases, classes, mix = WORKLOADS, lengthRatio = 1 } = options
  const segments = phases.map(({ durationMs, ratePerSec }) => ({ durationMs, fromPerSec: ratePerSec }))
  let phaseIndex = 0
  let phaseEndMs = phases[0]?.durationMs ?? 0
  for (const request of generateWorkload({ seed, segments, classes: mix, lengthRatio })) {
    while (request.atMs > phaseEndMs && phaseIndex < phases.length - 1) {
      phaseIndex++
      phaseEndMs += phases[phaseIndex]?.durationMs ?? 0
    }
    const slo = classes[request.className]
    if (slo === undefined) {
      const known = Object.keys(classes).join(', ')
      throw new RangeError(`the load has class "${request.className}", which is not among: ${known}`)
    }
    yield {
      id: `s${seed}-${request.id}`,
      atMs: request.atMs,
      phase: phases[phaseIndex]?.name ?? '',
      slo,
      promptTokens: request.promptTokens,
      maxTokens: request.maxTokens ?? request.outputTokens,
      outputTokens: request.outputTokens,
      ...(request.shared === undefined ? {} : { shared: request.shared }),
    }
  }
}
