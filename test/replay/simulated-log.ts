/** Logs as `serve` would write them, of runs in virtual time. */
import type { GateEffect } from '../../src/core/effects.ts'
import type { DecisionRecord, Settlement } from '../../src/core/records.ts'
import { createRoundRobin } from '../../src/policies/plain/round-robin.ts'
import { profile } from '../../src/sim/profiles.ts'
import { steadyRate } from '../../src/sim/rates.ts'
import { simulate } from '../../src/sim/run.ts'
import type { SimOptions } from '../../src/sim/run-types.ts'
import { generateWorkload } from '../../src/sim/workload.ts'
import { REQUEST_EVENT, requestFields } from '../../src/telemetry/request-line.ts'

export const START_UNIX_MS = Date.parse('2026-01-31T12:00:00.000Z')

/** The line of one settlement, with its decision when there was one. */
export function lineOf(settlement: Settlement, decision?: DecisionRecord): string {
  const open = decision === undefined ? undefined : { decision, candidatesSeen: decision.candidates.length }
  const endedAtMs = settlement.offer.receivedAtMs + settlement.e2eMs
  const time = new Date(START_UNIX_MS + Math.round(endedAtMs)).toISOString()
  const fields = requestFields(settlement, {}, (replicaId) => replicaId, open)
  return JSON.stringify({ level: 'info', time, ...fields, event: REQUEST_EVENT })
}

/** Two slow engines under `perSec` requests a second of all five classes; round-robin unless told otherwise. */
export function simulatedLog(
  perSec: number,
  durationMs: number,
  options: Partial<SimOptions> = {},
): readonly string[] {
  const decisions = new Map<string, DecisionRecord>()
  const lines: string[] = []
  simulate({
    replicas: [0, 1].map(() => ({ engine: { profile: profile('demo/slow'), jitterRatio: 0.05 } })),
    requests: generateWorkload({ seed: 5, lengthRatio: 0.25, segments: steadyRate(perSec, durationMs) }),
    createScheduler: createRoundRobin,
    onEffect: (effect: GateEffect) => {
      if ('record' in effect) decisions.set(effect.record.offer.requestId, effect.record)
    },
    onOutcome: ({ settlement }) => void lines.push(lineOf(settlement, decisions.get(settlement.requestId))),
    ...options,
  })
  return lines
}
