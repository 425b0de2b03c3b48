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

/** A replica whose pace has been learnt from one request after the other. */
function known(maxNumSeqs?: number): { readonly learnt: Learnt; readonly replica: ShownReplica } {
  const learnt = new Learnt({})
  const replica = new ShownReplica(learnt, { limits: maxNumSeqs === undefined ? {} : { maxNumSeqs } })
  replica.serve(80)
  return { learnt, replica }
}

interface PageHow {
  readonly kvUsageRatio?: number | undefined
  readonly ageMs?: number
  readonly instances?: number
}

/** Shows it a page of that instant. */
function show(
  learnt: Learnt,
  { ledger, nowMs }: ShownReplica,
  [runningRequests, waitingRequests]: readonly [running: number, waiting: number],
  { kvUsageRatio = 0.2, ageMs = 0, instances = 1 }: PageHow = {},
): number {
  ledger.report = {
    ...ledger.report,
    gauges: {
      runningRequests,
      waitingRequests,
      seenAtMs: nowMs - ageMs,
      ...(Number.isNaN(kvUsageRatio) ? {} : { kvUsageRatio }),
    },
  }
  learnt.readGauges(ledger, instances, nowMs)
  return learnt.slots(ledger)
}

/** What takes that long is overdue only after twice the time. */
const PATIENT_MS = 5000

/** So many that stream, and so many short prompts that were sent meanwhile. */
function full(streams: number, waiting: number) {
  const { learnt, replica } = known()
  const ids = Array.from({ length: streams }, () => replica.send())
  for (const id of ids) replica.begin(id)
  const lying = Array.from({ length: waiting }, () => replica.send({ promptTokens: 10 }, PATIENT_MS))
  // What is told first may be of before they came.
  replica.stream(ids, 50)
  return { learnt, replica, ids, lying }
}

describe('slots of an engine that goes on with answers and begins no prompt', () => {
  it('are what runs once that has been so for some steps, on one page or on several', () => {
    const { learnt, replica, ids } = full(5, 2)
    expect(show(learnt, replica, [5, 2])).toBe(Number.POSITIVE_INFINITY)
    replica.stream(ids, 5)
    expect(show(learnt, replica, [5, 2])).toBe(Number.POSITIVE_INFINITY)
    replica.stream(ids, 1)
    expect(show(learnt, replica, [5, 2])).toBe(5)
    const other = full(5, 2)
    other.replica.stream(other.ids, 8)
    expect(show(other.learnt, other.replica, [5, 2])).toBe(5)
  })

  it('are unknown while the prompts before it may have taken those steps', () => {
    const { learnt, replica } = known()
    const ids = Array.from({ length: 5 }, () => replica.send())
    const behind = replica.send({ promptTokens: 10 }, PATIENT_MS)
    for (const id of ids) replica.begin(id)
    replica.stream(ids, 9)
    replica.stream(ids, 8)
    expect(show(learnt, replica, [5, 1])).toBe(Number.POSITIVE_INFINITY)
    replica.stream(ids, 8)
    expect([show(learnt, replica, [5, 1]), replica.ledger.head?.permitId]).toEqual([5, behind])
  })

  it('are the most that ran, although a stream has just ended', () => {
    const { learnt, replica, ids } = full(10, 4)
    replica.stream(ids, 5)
    show(learnt, replica, [10, 4])
    replica.end(ids.pop() ?? 0)
    replica.stream(ids, 1)
    show(learnt, replica, [9, 4])
    replica.stream(ids, 5)
    expect(show(learnt, replica, [9, 4])).toBe(10)
  })

  it.each<[string, readonly [number, number], Parameters<typeof show>[3]]>([
    ['the page counts others that wait', [5, 3], {}],
    ['the page counts others that run', [6, 2], {}],
    ['one of ours has begun', [6, 1], {}],
    ['the KV cache is full', [5, 2], { kvUsageRatio: 0.97 }],
    ['nobody tells of the KV cache', [5, 2], { kvUsageRatio: Number.NaN }],
    ['the page is older than what the books say', [5, 2], { ageMs: 120 }],
    ['other gates may have sent as much before it', [5, 2], { instances: 8 }],
  ])('are unknown when %s', (_, page, how) => {
    const { learnt, replica, ids } = full(5, 2)
    replica.stream(ids, 8)
    expect(show(learnt, replica, page, how)).toBe(Number.POSITIVE_INFINITY)
  })

  it('are found by one of several gates, once the others can not have taken those steps', () => {
    const { learnt, replica, ids } = full(5, 2)
    replica.stream(ids, 16)
    expect(show(learnt, replica, [11, 4], { instances: 2 })).toBe(11)
  })

  it('are unknown while others pass the prompt: it waits for something of its own', () => {
    const { learnt, replica, ids, lying } = full(5, 2)
    replica.begin(lying.pop() ?? 0)
    replica.stream(ids, 8)
    expect(show(learnt, replica, [6, 1])).toBe(Number.POSITIVE_INFINITY)
  })

  it('are tried with one more a minute where less than all is ever asked for', () => {
    const { learnt, replica, ids, lying } = full(10, 2)
    replica.stream(ids, 8)
    expect(show(learnt, replica, [10, 2])).toBe(10)
    for (const id of [...lying, ...ids.splice(8)]) replica.end(id)
    const seen = [30_000, 31_000, 30_000, 31_000].map((afterMs) => {
      replica.nowMs += afterMs
      return show(learnt, replica, [8, 0])
    })
    expect(seen).toEqual([10, 11, 11, 12])
  })

  it('are found by pages alone where no answer streams', () => {
    const { learnt, replica } = known()
    const ids = Array.from({ length: 7 }, () => replica.send({ streamed: false }))
    for (const id of ids) replica.assume(id)
    const pages = [2, 0, 2, 2, 2].map((waiting) => {
      replica.nowMs += 1
      return show(learnt, replica, [5, waiting])
    })
    expect(pages).toEqual([...Array(4).fill(Number.POSITIVE_INFINITY), 5])
  })

  it('do not sink with the load', () => {
    const { learnt, replica, ids, lying } = full(16, 2)
    replica.stream(ids, 8)
    expect(show(learnt, replica, [16, 2])).toBe(16)
    for (const id of [...lying, ...ids.splice(3)]) replica.end(id)
    for (let page = 0; page < 300; page++) {
      replica.stream(ids, 1)
      show(learnt, replica, [3, 0])
    }
    expect(learnt.slots(replica.ledger)).toBe(16)
  })

  it('stay as they are on a page that counts far more than is ours there', () => {
    const { learnt, replica, ids } = full(5, 2)
    replica.stream(ids, 8)
    expect(show(learnt, replica, [5, 2])).toBe(5)
    for (const page of [
      [250, 900],
      [250, 0],
      [20, 0],
    ] as const) {
      replica.stream(ids, 1)
      expect(show(learnt, replica, page)).toBe(5)
    }
  })

  it('are more, and soon many more, when the engine runs more', () => {
    const { learnt, replica, ids, lying } = full(20, 20)
    replica.stream(ids, 8)
    expect(show(learnt, replica, [20, 20])).toBe(20)
    const seen = []
    for (let page = 0; page < 3; page++) {
      for (let n = 0; n < 2 ** page; n++) replica.begin(lying.shift() ?? 0)
      seen.push(show(learnt, replica, [replica.ledger.decodingSequences, lying.length]))
    }
    // One more than the 21 that run, two more than 23, four more than 27.
    expect(seen).toEqual([22, 25, 31])
  })
})

describe('slots of engines that are alike', () => {
  it('are those of the largest for one of which nothing is known, whatever becomes of that', () => {
    const { learnt, replica, ids } = full(5, 2)
    const unlike = new ReplicaLedger(reportOf('r3', { limits: {}, groupId: 'unlike' }))
    const other = new ShownReplica(learnt, { replicaId: 'r2', limits: {} })
    replica.stream(ids, 8)
    expect(show(learnt, replica, [5, 2])).toBe(5)
    expect([learnt.slots(other.ledger), learnt.slots(unlike)]).toEqual([5, Number.POSITIVE_INFINITY])
    // A page of its own that says nothing of its slots makes the number none of its own.
    expect(show(learnt, other, [0, 0])).toBe(5)
    for (const id of [...ids]) replica.end(id)
    const more = Array.from({ length: 9 }, () => replica.send())
    for (const id of more) replica.begin(id)
    expect(show(learnt, replica, [9, 0])).toBe(10)
    expect(learnt.slots(other.ledger)).toBe(10)
    learnt.reset('r1')
    expect([learnt.slots(replica.ledger), learnt.slots(other.ledger)]).toEqual([
      Number.POSITIVE_INFINITY,
      Number.POSITIVE_INFINITY,
    ])
  })

  it('are no fewer than any of them was seen to run', () => {
    const { learnt, replica, ids } = full(5, 2)
    const larger = new ShownReplica(learnt, { replicaId: 'r2', limits: {} })
    for (let n = 0; n < 9; n++) larger.begin(larger.send())
    show(learnt, larger, [9, 0])
    replica.stream(ids, 8)
    expect(show(learnt, replica, [5, 2])).toBe(5)
    expect(learnt.slots(larger.ledger)).toBe(9)
  })
})

describe('slots of an engine that lets a prompt lie', () => {
  const STREAMS = 5
  /** After one page, read so long after two prompts were sent that should have had their first tokens within 40 ms. */
  function slotsSeen(page: readonly [running: number, waiting: number], afterMs: number): number {
    const { learnt, replica } = known()
    const ids = Array.from({ length: STREAMS }, () => replica.send())
    for (const id of ids) replica.begin(id)
    replica.send()
    replica.send()
    const sentAtMs = replica.nowMs
    replica.stream(ids, 1)
    replica.stream(ids, 3)
    const [runningRequests, waitingRequests] = page
    const gauges = { runningRequests, waitingRequests, kvUsageRatio: 0.2, seenAtMs: sentAtMs + afterMs }
    replica.ledger.report = reportOf('r1', { limits: {}, gauges })
    learnt.readGauges(replica.ledger, 1, gauges.seenAtMs)
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

  it('are unknown however often some wait beside as many that run, while each is begun within two steps', () => {
    const { learnt, replica } = known()
    const ids = Array.from({ length: STREAMS }, () => replica.send())
    for (const id of ids) replica.begin(id)
    for (let page = 0; page < 20; page++) {
      const next = replica.send({ promptTokens: 10 })
      replica.stream(ids, 1)
      replica.stream(ids, 1)
      show(learnt, replica, [STREAMS, 1])
      replica.begin(next)
      replica.end(next)
    }
    expect(learnt.slots(replica.ledger)).toBe(Number.POSITIVE_INFINITY)
  })

  it('are unknown when nothing came of its streams either: it stands still', () => {
    const { learnt, replica } = known()
    for (let n = 0; n < STREAMS; n++) replica.begin(replica.send())
    replica.send()
    replica.nowMs += 500
    expect(show(learnt, replica, [STREAMS, 1])).toBe(Number.POSITIVE_INFINITY)
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
    expect(learnt.late).toBeLessThan(told.good / 50)
    expect(learnt.good).toBeGreaterThan(0.93 * told.good)
    // Who waits in the engine for a slot that was tried with one request more says nothing of predictions.
    expect([told.untrusted, learnt.untrusted]).toEqual([0, 0])
  })
})
