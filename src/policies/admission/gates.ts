/** The gates in the order in which they are asked; the first that refuses names the reason. */
import type { GateName } from '../../core/records.ts'
import type { Job } from '../job.ts'
import type { Outlook } from '../outlook.ts'
import { depth } from './depth.ts'
import { kvPeak } from './kv-peak.ts'
import { slack } from './slack.ts'
import { slots } from './slots.ts'
import { state } from './state.ts'
import { steady } from './steady.ts'

/** What a gate may look at: the replica, the request, and what sending it there would mean. */
export interface Candidate {
  readonly view: Outlook
  readonly job: Job
  readonly uncachedTokens: number
  /** Predicted peak of KV use if admitted, 0 to 1; undefined when the capacity is unknown. Costly: asked last. */
  readonly kvPeakRatio: () => number | undefined
  /** Depth of backlog that is kept in the engine, in tokens. */
  readonly depthTokens: number
  /** Part of each room that this request may take: 1 for promised work, less for leftovers. */
  readonly roomRatio: number
  readonly nowMs: number
}

/** True when the candidate may pass. Pure, and each stands alone: a fuller replica never passes what it refused. */
export interface AdmissionGate {
  readonly name: GateName
  passes(candidate: Candidate): boolean
}

export const admissionGates: readonly AdmissionGate[] = [state, slots, depth, steady, slack, kvPeak]

/** The first gate that refuses, or undefined when all let it pass. */
export function refusingGate(candidate: Candidate): GateName | undefined {
  return admissionGates.find((gate) => !gate.passes(candidate))?.name
}
