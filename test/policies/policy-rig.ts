/** Replicas, waiters and rounds for tests of single policies, out of plain numbers. */
import fc from 'fast-check'
import { ReplicaLedger } from '../../src/core/ledger.ts'
import type { Offer, PoolId } from '../../src/core/request.ts'
import type { TrustState } from '../../src/core/scheduler.ts'
import { newWaiter, WaitingRoom } from '../../src/core/waiting-room.ts'
import type { StepPrior } from '../../src/estimate/step-model.ts'
import { type Job, jobOf } from '../../src/policies/job.ts'
import { Learnt } from '../../src/policies/learnt.ts'
import { type Outlook, outlook } from '../../src/policies/outlook.ts'
import type { SluicePart } from '../../src/policies/parts.ts'
import type { Round } from '../../src/policies/round.ts'
import { inFlightOf, reportOf, someOffer } from '../core/core-rig.ts'

export const NOW_MS = 10_000

export const PRIOR: StepPrior = {
  baseMs: 10,
  perSequenceMs: 0.1,
  perContextTokenMs: 0.0001,
  perChunkMs: 2,
  perPrefillTokenMs: 0.06,
  perPairMs: 0,
  requestOverheadMs: 5,
  uncertaintyRatio: 0.1,
}

/** One for all rounds, since it is dear to make; who needs books of its own asks about a pool of its own. */
export const LEARNT = new Learnt({ g: PRIOR })

/** A request in flight. */
export interface Flying {
  readonly promptTokens: number
  readonly sequences: number
  /** Tokens of each sequence; 0 while it prefills. */
  readonly made: number
}

export const flying: fc.Arbitrary<Flying> = fc.record({
  promptTokens: fc.oneof(fc.integer({ min: 1, max: 200 }), fc.integer({ min: 1, max: 3000 })),
  sequences: fc.integer({ min: 1, max: 3 }),
  made: fc.integer({ min: 0, max: 100 }),
})

export function ledgerOf(replicaId: string, rows: readonly Flying[], maxNumSeqs = 12): ReplicaLedger {
  const limits = { maxNumSeqs, maxNumBatchedTokens: 512, kvCapacityTokens: 40_000 }
  const ledger = new ReplicaLedger(reportOf(replicaId, { limits }))
  for (const [permitId, { promptTokens, sequences, made }] of rows.entries()) {
    const offer = someOffer({ promptTokens, sequences, maxOutputTokens: 200, minOutputTokens: 200 })
    const inFlight = inFlightOf(permitId, offer, { replicaId, dispatchedAtMs: NOW_MS - 50 })
    ledger.dispatch(inFlight)
    if (made === 0) continue
    ledger.firstToken(permitId, NOW_MS - 20 * made)
    ledger.progress(inFlight, made * sequences, NOW_MS)
  }
  return ledger
}

export function jobFor(offer: Offer): Job {
  return jobOf(newWaiter(offer, NOW_MS), { value: 1, owed: false }, LEARNT, 12, NOW_MS, 0)
}

/** A round over replicas with those in flight; nobody waits in its room. */
export function roundOf(
  fleet: readonly (readonly Flying[])[],
  change: {
    readonly trust?: TrustState
    readonly without?: readonly SluicePart[]
    readonly pool?: PoolId
  } = {},
): Round {
  const ledgers = fleet.map((rows, index) => ledgerOf(`r${index}`, rows))
  const views: readonly Outlook[] = ledgers.map((ledger) => outlook(ledger, LEARNT, 1, NOW_MS))
  return {
    pool: change.pool ?? 'm',
    state: {
      waiting: new WaitingRoom(),
      replicas: new Map(ledgers.map((ledger) => [ledger.replicaId, ledger])),
      instances: 1,
    },
    learnt: LEARNT,
    without: new Set(change.without),
    nowMs: NOW_MS,
    views,
    trust: change.trust ?? 'trusted',
    tightestTpotMs: 50,
    tightestTtftMs: 500,
    heldByTime: false,
  }
}
