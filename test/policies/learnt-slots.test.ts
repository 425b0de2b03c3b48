/** Batch slots are learnt from an engine that shows itself full, again and again or beyond doubt, and from no other. */
import { describe, expect, it } from 'vitest'
import { ReplicaLedger } from '../../src/core/ledger.ts'
import { Learnt } from '../../src/policies/learnt.ts'
import { createSluice } from '../../src/policies/sluice.ts'
import type { EngineProfile } from '../../src/sim/profiles.ts'
import { Rng } from '../../src/sim/rng.ts'
import { simulate } from '../../src/sim/run.ts'
import type { WorkloadRequest } from '../../src/sim/workload-types.ts'
import { reportOf } from '../core/core-rig.ts'
import { sloOf } from '../slo/facts.ts'
import { ShownReplica } from '../support/shown-replica.ts'

/** What is believed after pages with so many running and waiting. */
function slotsAfter(pages: readonly (readonly [running: number, waiting: number])[]): number {
  const learnt = new Learnt({})
  const ledger = new ReplicaLedger(reportOf('r', { limits: {} }))
  pages.forEach(([runningRequests, waitingRequests], index) => {
    ledger.report = reportOf('r', {
      limits: {},
      gauges: { runningRequests, waitingRequests, seenAtMs: index * 500 },
    })
    learnt.readGauges(ledger)
  })
  return learnt.slots(ledger)
}

describe('learnt slots', () => {
  it('are the most that ran, although a stream has just ended on some pages', () => {
    expect(
      slotsAfter([
        [16, 4],
        [15, 6],
        [16, 5],
        [15, 9],
      ]),
    ).toBeCloseTo(16, 0)
  })

  it('are unknown while what waits only waits for the running step', () => {
    expect(
      slotsAfter([
        [3, 1],
        [2, 1],
        [3, 1],
        [2, 2],
        [3, 1],
        [2, 1],
      ]),
    ).toBe(Number.POSITIVE_INFINITY)
  })
})

describe('slots that were learnt too few', () => {
  const FULL: readonly (readonly [number, number])[] = [
    [60, 4],
    [60, 6],
    [60, 5],
    [60, 9],
  ]

  it('are more as soon as the engine runs more', () => {
    expect(slotsAfter(FULL)).toBe(60)
    expect(slotsAfter([...FULL, [64, 3]])).toBe(80)
  })
})

/** A replica whose pace has been learnt from one request after the other. */
function known(maxNumSeqs?: number): { readonly learnt: Learnt; readonly replica: ShownReplica } {
  const learnt = new Learnt({})
  const replica = new ShownReplica(learnt, { limits: maxNumSeqs === undefined ? {} : { maxNumSeqs } })
  replica.serve(80)
  return { learnt, replica }
}

describe('slots of an engine that lets a prompt lie', () => {
  const STREAMS = 5
  /** After one page, read so long after two prompts were sent that should have had their first tokens within 40 ms. */
  function slotsSeen(page: readonly [running: number, waiting: number], afterMs: number): number {
    const { learnt, replica } = known()
    for (let n = 0; n < STREAMS; n++) replica.begin(replica.send())
    replica.send()
    replica.send()
    const [runningRequests, waitingRequests] = page
    const gauges = { runningRequests, waitingRequests, seenAtMs: replica.nowMs + afterMs }
    replica.ledger.report = reportOf('r1', { limits: {}, gauges })
    learnt.readGauges(replica.ledger)
    return learnt.slots(replica.ledger)
  }

  it('are what runs on the first page that counts all as waiting that has no token, and nobody else', () => {
    expect(slotsSeen([STREAMS, 2], 200)).toBe(STREAMS)
    expect(slotsSeen([STREAMS, 3], 200)).toBe(Number.POSITIVE_INFINITY)
  })

  it('are unknown while the prompt is not late, or is late but under way', () => {
    expect(slotsSeen([STREAMS, 2], 100)).toBe(Number.POSITIVE_INFINITY)
    expect(slotsSeen([STREAMS + 1, 1], 200)).toBe(Number.POSITIVE_INFINITY)
  })

  it('are unknown however often some wait beside as many that run, while no prompt is late', () => {
    const { learnt, replica } = known()
    for (let n = 0; n < STREAMS; n++) replica.begin(replica.send())
    for (let page = 1; page < 9; page++) {
      const gauges = { runningRequests: STREAMS, waitingRequests: 2, seenAtMs: replica.nowMs + page }
      replica.ledger.report = reportOf('r1', { limits: {}, gauges })
      learnt.readGauges(replica.ledger)
    }
    expect(learnt.slots(replica.ledger)).toBe(Number.POSITIVE_INFINITY)
  })

  it('leave trust alone, for however long the engine stays full', () => {
    const { learnt, replica } = known(2)
    expect(learnt.trust('g', replica.nowMs)).toBe('trusted')
    const running = [replica.send(), replica.send()]
    for (const id of running) replica.begin(id)
    // Each is sent beyond the slots and begins when one of the two has ended, 20 s later.
    for (let n = 0; n < 40; n++) {
      const next = replica.send()
      for (let second = 0; second < 20; second++) replica.stream(running, 50)
      replica.end(running.shift() ?? 0)
      replica.begin(next)
      running.push(next)
    }
    expect(learnt.trust('g', replica.nowMs)).toBe('trusted')
  })
})

describe('long answers on an engine with few slots', () => {
  /** A small engine with 16 slots that are full for two seconds with each answer. */
  const PROFILE: EngineProfile = {
    id: 'few slots',
    source: 'invented',
    prefill: { floorMs: 0, baseMs: 6, perTokenMs: 0.12, perTokenContextMs: 0 },
    decode: { baseMs: 3, perSequenceMs: 0.2, perContextTokenMs: 0 },
    stepOverheadMs: 0,
    requestOverheadMs: 4,
    kvCapacityTokens: 12_288,
    defaults: { maxNumSeqs: 16, maxNumBatchedTokens: 256 },
  }
  const BUSY_FROM_MS = 4000
  const classes = { chat: sloOf({ name: 'chat', ttftMs: 900, tpotMs: 80, maxWaitMs: 30_000 }) }

  /** Two requests a second, then for four seconds twice what the engine can do. */
  function requests(seed: number): readonly WorkloadRequest[] {
    const rng = new Rng(seed)
    const made: WorkloadRequest[] = []
    for (let atMs = 0; atMs < BUSY_FROM_MS + 4000; ) {
      atMs += -Math.log(1 - rng.uniform()) * (atMs < BUSY_FROM_MS ? 500 : 60)
      const outputTokens = 250 + Math.floor(150 * rng.uniform())
      const lengths = { promptTokens: 60, outputTokens, maxTokens: outputTokens }
      made.push({ id: `r${made.length}`, atMs, className: 'chat', ...lengths })
    }
    return made
  }

  function counts(limitsKnown: boolean): { good: number; late: number; untrusted: number } {
    let good = 0
    let late = 0
    let untrusted = 0
    for (const seed of [1, 2, 3]) {
      const scheduler = createSluice()
      const { outcomes } = simulate({
        replicas: [{ engine: { profile: PROFILE, jitterRatio: 0.05, seed } }],
        requests: requests(seed),
        createScheduler: () => scheduler,
        classes,
        networkMs: 1,
        limitsKnown,
      })
      if (scheduler.trust('model') === 'fallback') untrusted++
      for (const { settlement } of outcomes) {
        if (settlement.verdict.kind === 'good') good++
        else if (settlement.outcome === 'completed') late++
      }
    }
    return { good, late, untrusted }
  }

  it('are kept in time by whoever has to find the slots out nearly as well as by whoever is told', () => {
    const told = counts(true)
    const learnt = counts(false)
    expect(told.late).toBe(0)
    expect(learnt.late).toBeLessThan(told.good / 40)
    expect(learnt.good).toBeGreaterThan(0.93 * told.good)
    // Who waits in the engine for a slot that was tried with one request more says nothing of predictions.
    expect([told.untrusted, learnt.untrusted]).toEqual([0, 0])
  })
})
