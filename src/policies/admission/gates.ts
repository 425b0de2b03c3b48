/** The gates in the order in which they are asked; the first that refuses names the reason. */
import type { GateName } from '../../core/records.ts'
import type { SluicePart } from '../parts.ts'
import { depth } from './depth.ts'
import type { AdmissionGate, Candidate } from './gate.ts'
import { kvPeak } from './kv-peak.ts'
import { slack } from './slack.ts'
import { slots } from './slots.ts'
import { state } from './state.ts'
import { steady } from './steady.ts'

export const admissionGates: readonly AdmissionGate[] = [state, slots, depth, steady, slack, kvPeak]

/** The first gate that refuses, or undefined when all let it pass. */
export function refusingGate(
  candidate: Candidate,
  without: ReadonlySet<GateName | SluicePart>,
): GateName | undefined {
  return admissionGates.find((gate) => !without.has(gate.name) && !gate.passes(candidate))?.name
}
