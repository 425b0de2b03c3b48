/** Rivals do what their papers and sources say: a wrong formula there would only make ours look better. */
import { describe, expect, it } from 'vitest'
import { ReplicaLedger } from '../../src/core/ledger.ts'
import type { ReplicaGauges } from '../../src/core/replica.ts'
import type { Offer } from '../../src/core/request.ts'
import type { GateState, Intent, Scheduler } from '../../src/core/scheduler.ts'
import { newWaiter, WaitingRoom } from '../../src/core/waiting-room.ts'
import { createAimd } from '../../src/policies/rivals/aimd.ts'
import { createGradient2 } from '../../src/policies/rivals/gradient2.ts'
import { createLeastPending } from '../../src/policies/rivals/least-pending.ts'
import { createLMetric } from '../../src/policies/rivals/lmetric.ts'
import { createProbabilisticAdmitter } from '../../src/policies/rivals/probabilistic-admitter.ts'
import { poolSaturation } from '../../src/policies/rivals/saturation.ts'
import { createSaturationGate } from '../../src/policies/rivals/saturation-gate.ts'
import { inFlightOf, reportOf, someOffer } from '../core/core-rig.ts'
import { sloOf } from '../slo/facts.ts'

const NOW_MS = 1000

interface Load {
  /** Prompt tokens of each request without a first token. */
  readonly prefilling?: readonly number[]
  readonly decoding?: number
  readonly gauges?: Partial<ReplicaGauges>
}

let permits = 0
function ledgerOf(replicaId: string, { prefilling = [], decoding = 0, gauges }: Load): ReplicaLedger {
  const seen = { seenAtMs: NOW_MS, runningRequests: 0, waitingRequests: 0, ...gauges }
  const ledger = new ReplicaLedger(reportOf(replicaId, gauges === undefined ? {} : { gauges: seen }))
  const tokens = [...Array.from({ length: decoding }, () => 10), ...prefilling]
  for (const [nth, promptTokens] of tokens.entries()) {
    const permitId = ++permits
    ledger.dispatch(inFlightOf(permitId, someOffer({ promptTokens }), { replicaId }))
    if (nth < decoding) ledger.firstToken(permitId, NOW_MS - 1)
  }
  return ledger
}

function stateOf(loads: readonly Load[], offers: readonly Offer[]): GateState {
  const waiting = new WaitingRoom()
  for (const offer of offers) waiting.add(newWaiter(offer, NOW_MS))
  const ledgers = loads.map((load, index) => ledgerOf(`r${index}`, load))
  return { waiting, replicas: new Map(ledgers.map((ledger) => [ledger.replicaId, ledger])), instances: 1 }
}

/** What becomes of one request before replicas with those loads. */
function chosen(scheduler: Scheduler, loads: readonly Load[], offer = someOffer({})): Intent | undefined {
  return scheduler.plan(stateOf(loads, [offer]), NOW_MS).intents[0]
}

describe('rivals that choose a replica', () => {
  it('LMetric takes the least product of prompt tokens and batch', () => {
    // (200 + 100) * (1 + 1) = 600 against (0 + 100) * (7 + 1) = 800.
    const offer = someOffer({ promptTokens: 100 })
    expect(chosen(createLMetric(), [{ prefilling: [200] }, { decoding: 7 }], offer)).toMatchObject({
      kind: 'admit',
      replicaId: 'r0',
    })
    // (500 + 100) * 2 = 1200 against 800.
    expect(chosen(createLMetric(), [{ prefilling: [500] }, { decoding: 7 }], offer)).toMatchObject({
      replicaId: 'r1',
    })
  })

  it('least-pending takes the fewest prompt tokens still to prefill, however large the batch', () => {
    expect(chosen(createLeastPending(), [{ prefilling: [50] }, { decoding: 9 }])).toMatchObject({
      replicaId: 'r1',
    })
  })
})

describe('what llm-d reads from pages', () => {
  const half: Load = { gauges: { waitingRequests: 2, kvUsageRatio: 0.4 } }

  it('is the mean over replicas of the fuller of two signals', () => {
    const ledgers = [half, { gauges: { waitingRequests: 10 } }].map((load, at) => ledgerOf(`r${at}`, load))
    expect(poolSaturation(ledgers, {})).toBeCloseTo((0.5 + 2) / 2, 9)
  })

  it('holds everybody at saturation, the nearest deadline first below it', () => {
    const gate = createSaturationGate({ queueMs: 60_000 })
    const late = someOffer({ slo: sloOf({ ttftMs: 5000 }), receivedAtMs: NOW_MS })
    const soon = someOffer({ slo: sloOf({ ttftMs: 500 }), receivedAtMs: NOW_MS })
    expect(gate.plan(stateOf([half], [late, soon]), NOW_MS).intents).toMatchObject([
      { kind: 'admit', requestId: soon.requestId },
    ])
    const full: Load = { gauges: { waitingRequests: 5 } }
    expect(gate.plan(stateOf([full], [late, soon]), NOW_MS).intents).toEqual([])
  })

  it('refuses by chance, min(1, 300 s^5): 2 in 100 at 0.15, a third at a quarter, all at 0.32', () => {
    const refusedOf = (saturation: number): number => {
      const admitter = createProbabilisticAdmitter({ seed: 7 })
      const load: Load = { gauges: { kvUsageRatio: 0.8 * saturation } }
      let refused = 0
      for (let i = 0; i < 4000; i++) if (chosen(admitter, [load])?.kind === 'shed') refused++
      return refused / 4000
    }
    expect(refusedOf(0.15)).toBeCloseTo(300 * 0.15 ** 5, 2)
    expect(Math.abs(refusedOf(0.25) - 300 * 0.25 ** 5)).toBeLessThan(0.03)
    expect(refusedOf(0.32)).toBe(1)
  })
})

describe('limits that move', () => {
  const slo = sloOf({ ttftMs: 500 })
  const ledger = ledgerOf('r0', { decoding: 30 })
  const limitIn = (scheduler: Scheduler): number => {
    const row = (scheduler.snapshot() as Readonly<Record<string, number | { readonly limit: number }>>).r0
    return typeof row === 'number' ? row : (row?.limit ?? Number.NaN)
  }
  /** First tokens after that long, one in each half second. */
  function feed(scheduler: Scheduler, ttftsMs: readonly number[], fromMs = 0): void {
    for (const [nth, ttftMs] of ttftsMs.entries()) {
      const nowMs = fromMs + 500 * (nth + 1)
      const offer = someOffer({ slo, receivedAtMs: nowMs - ttftMs, promptTokens: 200 })
      scheduler.firstToken(inFlightOf(1, offer, { dispatchedAtMs: nowMs - ttftMs }), ledger, nowMs)
    }
  }

  it('AIMD adds one for each window in time and takes a tenth for a late one', () => {
    const aimd = createAimd({ queueMs: 0 })
    feed(aimd, [100, 100, 100])
    const grown = limitIn(aimd)
    expect(grown).toBeGreaterThan(20)
    feed(aimd, [900], 1500)
    expect(limitIn(aimd)).toBeCloseTo(grown * 0.9, 9)
  })

  it('gradient2 grows while latency stays what it was, and falls when it is far above', () => {
    const gradient2 = createGradient2({ queueMs: 0 })
    feed(
      gradient2,
      Array.from({ length: 20 }, () => 60),
    )
    const grown = limitIn(gradient2)
    expect(grown).toBeGreaterThan(20)
    feed(gradient2, [600], 10_000)
    // The gradient is at its least, a half: 0.8 of the limit and 0.2 of (half of it + 4).
    expect(limitIn(gradient2)).toBeCloseTo(Math.max(20, grown * 0.8 + 0.2 * (grown * 0.5 + 4)), 6)
  })
})
