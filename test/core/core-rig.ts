/** What tests of the core share: offers of different shapes, replica reports, settings and a judge that keeps its facts. */
import type { GateSettings } from '../../src/core/gate-settings.ts'
import type { InFlight } from '../../src/core/ledger.ts'
import type { ReplicaReport } from '../../src/core/replica.ts'
import type { Offer } from '../../src/core/request.ts'
import { offerOf, sloOf } from '../slo/facts.ts'

export const SLO = sloOf({ ttftMs: 500, tpotMs: 50, maxWaitMs: 1000 })

let offers = 0

/** An offer with an id of its own unless one is given. */
export function someOffer(change: Partial<Offer> = {}): Offer {
  return offerOf(change.slo ?? SLO, { requestId: `q${++offers}`, ...change })
}

export function reportOf(replicaId: string, change: Partial<ReplicaReport> = {}): ReplicaReport {
  return {
    replicaId,
    pools: ['m'],
    groupId: 'g',
    state: 'live',
    limits: { maxNumSeqs: 16, maxNumBatchedTokens: 2048, kvCapacityTokens: 100_000 },
    generation: 0,
    ...change,
  }
}

export function settingsOf(change: Partial<GateSettings> = {}): GateSettings {
  return {
    waiting: { requests: 100, bytes: 1e6, tokens: 1e6 },
    rerouteBudgetRatio: 0.1,
    instances: 1,
    tenants: {},
    configDigest: 'test',
    ...change,
  }
}

/** A permit as the ledger books it. */
export function inFlightOf(permitId: number, offer: Offer, change: Partial<InFlight> = {}): InFlight {
  return {
    permitId,
    requestId: offer.requestId,
    replicaId: 'r1',
    offer,
    attempt: 1,
    enteredAtMs: offer.receivedAtMs,
    dispatchedAtMs: offer.receivedAtMs,
    uncachedTokens: offer.promptTokens,
    contentEvents: 0,
    ...change,
  }
}
