/** What trust decides: while untrusted no prediction sheds, and a prediction that is too dark is found out. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Offer, ttftTargetMs } from '../../src/core/request.ts'
import type { Scheduler, TrustState } from '../../src/core/scheduler.ts'
import { isProbe } from '../../src/estimate/probe.ts'
import { createSluice } from '../../src/policies/sluice.ts'
import { profile } from '../../src/sim/profiles.ts'
import { summarize } from '../../src/sim/report.ts'
import { simulate } from '../../src/sim/run.ts'
import { workloadSource } from '../../src/sim/source.ts'
import { namedWorkload } from '../../src/sim/workloads.ts'
import { reportOf } from '../core/core-rig.ts'
import { GateWorld } from '../property/gate-world.ts'
import { offerOf, sloOf } from '../slo/facts.ts'

/** True when the promise is broken already, whatever anybody predicts. */
function isBroken(offer: Offer, nowMs: number): boolean {
  const { slo, receivedAtMs, promptTokens, steerTtftMs, clientDeadlineAtMs } = offer
  const spans = [steerTtftMs ?? ttftTargetMs(slo, promptTokens), slo.e2eMs].filter((ms) => ms !== undefined)
  return Math.min(...spans.map((ms) => receivedAtMs + ms), clientDeadlineAtMs ?? Infinity) <= nowMs
}

interface Seen {
  readonly sheds: Record<TrustState, number>
  readonly wrong: string[]
}

/** Looks at each shed that a prediction could have made. */
function watched(scheduler: Scheduler, { sheds, wrong }: Seen): Scheduler {
  return {
    ...scheduler,
    plan(state, nowMs) {
      const plan = scheduler.plan(state, nowMs)
      for (const intent of plan.intents) {
        const offer = state.waiting.get(intent.requestId)?.offer
        if (intent.kind !== 'shed' || intent.reason === 'no_replica' || offer === undefined) continue
        const trust = scheduler.trust(offer.pool)
        sheds[trust]++
        if (trust === 'fallback' && !isBroken(offer, nowMs)) wrong.push(`${intent.requestId} at ${nowMs}`)
      }
      return plan
    },
  }
}

interface Past {
  readonly promptTokens: number
  /** How many times longer than usual it took. */
  readonly strange: number
}

const pastOf = (strange: readonly number[], minLength: number): fc.Arbitrary<readonly Past[]> =>
  fc.array(
    fc.record({
      promptTokens: fc.integer({ min: 50, max: 3000 }),
      strange: fc.constantFrom(...strange),
    }),
    { minLength, maxLength: 60, size: 'max' },
  )
/** Of some engines nothing is known, some are steady, some are not to be understood. */
const past = fc.oneof(pastOf([1], 0), pastOf([1], 55), pastOf([1, 1, 1, 0.1, 10], 0))

interface Asked {
  readonly ttftMs: number | undefined
  readonly e2eMs: number | undefined
  readonly promptTokens: number
  readonly passMs: number
}

const burst: fc.Arbitrary<readonly Asked[]> = fc.array(
  fc.record({
    ttftMs: fc.constantFrom(undefined, 100, 300, 1000),
    e2eMs: fc.constantFrom(undefined, undefined, 400, 3000),
    promptTokens: fc.integer({ min: 1, max: 9000 }),
    passMs: fc.constantFrom(0, 0, 0, 10, 60),
  }),
  { minLength: 5, maxLength: 40, size: 'max' },
)

function live(world: GateWorld, rows: readonly Past[]): void {
  for (const [i, { promptTokens, strange }] of rows.entries()) {
    const slo = sloOf({ ttftMs: 60_000, maxWaitMs: 60_000 })
    const offer = offerOf(slo, { requestId: `p${i}`, receivedAtMs: world.nowMs, promptTokens })
    world.tell({ kind: 'offer', offer })
    for (const permit of [...world.permits.values()]) {
      world.pass(strange * (30 + 0.2 * promptTokens))
      world.firstToken(permit)
      world.pass(strange * 160)
      world.progress([permit], 8)
      world.settle(permit, 'completed')
    }
  }
}

function ask(world: GateWorld, rows: readonly Asked[]): void {
  for (const [i, { ttftMs, e2eMs, promptTokens, passMs }] of rows.entries()) {
    const targets = { ...(ttftMs === undefined ? {} : { ttftMs }), ...(e2eMs === undefined ? {} : { e2eMs }) }
    const slo = sloOf({ ...targets, maxWaitMs: 5000 })
    const offer = offerOf(slo, {
      requestId: `a${i}`,
      receivedAtMs: world.nowMs,
      promptTokens,
      maxOutputTokens: 300,
    })
    world.tell({ kind: 'offer', offer })
    world.pass(passMs)
  }
}

describe('trust', () => {
  it('I30 while there is none, nothing is shed by prediction', () => {
    const sheds = { trusted: 0, cautious: 0, fallback: 0 }
    fc.assert(
      fc.property(past, burst, (before, asked) => {
        const wrong: string[] = []
        const world = new GateWorld(watched(createSluice(), { sheds, wrong }))
        world.tell({ kind: 'replicaChanged', replica: reportOf('r1') })
        live(world, before)
        ask(world, asked)
        world.pass(6000)
        expect(wrong).toEqual([])
      }),
      { numRuns: 30, seed: 3 },
    )
    // Each kind was met, or the law would be empty.
    for (const [trust, count] of Object.entries(sheds)) expect(count, trust).toBeGreaterThan(10)
  })

  it('I30 without it, nothing is shed by prediction, however right predictions have been', () => {
    const sheds = { trusted: 0, cautious: 0, fallback: 0 }
    fc.assert(
      fc.property(pastOf([1], 55), burst, (before, asked) => {
        const wrong: string[] = []
        const world = new GateWorld(watched(createSluice({ without: ['trust'] }), { sheds, wrong }))
        world.tell({ kind: 'replicaChanged', replica: reportOf('r1') })
        live(world, before)
        ask(world, asked)
        world.pass(6000)
        expect(wrong).toEqual([])
      }),
      { numRuns: 10, seed: 3 },
    )
    expect(sheds).toMatchObject({ trusted: 0, cautious: 0 })
    expect(sheds.fallback).toBeGreaterThan(10)
  })
})

describe('overload while nothing predicted is believed', () => {
  it('sends hardly anybody who comes too late, though nobody is refused by prediction', () => {
    const result = simulate({
      replicas: [{ engine: { profile: profile('demo/slow'), jitterRatio: 0.05 } }],
      requests: workloadSource(namedWorkload('short-chat'), { lengthRatio: 0.25 }).streamAt(32, 10_000, 4),
      createScheduler: () => createSluice({ without: ['trust'] }),
      drainMs: 5000,
    })
    const { total, badByCause } = summarize(result, 0, 10_000)
    expect(total.shed).toBeGreaterThan(100)
    expect(total.good).toBeGreaterThan(80)
    expect(badByCause.ttft ?? 0).toBeLessThan(0.05 * total.good)
  })
})

/** A world whose engine took 2 s for any first token, and from now on takes `ttftMs`. */
class Changed {
  readonly scheduler = createSluice()
  readonly world = new GateWorld(this.scheduler)
  readonly ttftMs: number
  #count = 0

  constructor(ttftMs: number) {
    this.ttftMs = ttftMs
    this.world.tell({ kind: 'replicaChanged', replica: reportOf('r1') })
    for (let i = 0; i < 80; i++)
      this.#serve(
        this.#offer(60_000, () => true),
        2000,
      )
  }

  /** Offers one request that must have its first token in 500 ms and says whether it was served. */
  ask(suits: (requestId: string) => boolean): boolean {
    this.world.pass(200)
    const served = this.#offer(500, suits)
    this.#serve(served, this.ttftMs)
    return served
  }

  #offer(ttftMs: number, suits: (requestId: string) => boolean): boolean {
    let requestId = `o${++this.#count}`
    while (!suits(requestId)) requestId = `o${++this.#count}`
    const slo = sloOf({ ttftMs, maxWaitMs: 60_000 })
    const sizes = { promptTokens: 300 + (this.#count % 7), maxOutputTokens: 40 }
    this.world.tell({
      kind: 'offer',
      offer: offerOf(slo, { requestId, receivedAtMs: this.world.nowMs, ...sizes }),
    })
    return this.world.permits.size > 0
  }

  #serve(isOut: boolean, ttftMs: number): void {
    const [permit] = this.world.permits.values()
    if (!isOut || permit === undefined) return
    this.world.pass(ttftMs)
    this.world.firstToken(permit)
    for (let step = 0; step < 4; step++) {
      this.world.pass(ttftMs)
      this.world.progress([permit], 10)
    }
    this.world.settle(permit, 'completed')
  }
}

describe('a prediction that has become too dark', () => {
  it('sheds what would be served in time, and is found out by probes', () => {
    const changed = new Changed(20)
    expect(changed.scheduler.trust('m')).toBe('trusted')
    let asked = 0
    for (let inRow = 0; inRow < 20 && asked < 1000; asked++) inRow = changed.ask(() => true) ? inRow + 1 : 0
    expect(asked).toBeGreaterThan(20)
    // One request in 64 is a probe, and a handful of them suffices.
    expect(asked).toBeLessThan(600)
  })

  it('wears out in ten minutes even without a single probe', () => {
    const changed = new Changed(20)
    const noProbe = (requestId: string) => !isProbe(requestId)
    const untilMs = changed.world.nowMs + 560_000
    while (changed.world.nowMs < untilMs) expect(changed.ask(noProbe)).toBe(false)
    changed.world.pass(60_000)
    expect(changed.ask(noProbe)).toBe(true)
  })

  it('holds where it is right: a probe that comes late restores no trust in the engine', () => {
    const changed = new Changed(2000)
    let served = 0
    for (let i = 0; i < 300; i++) if (changed.ask(() => true)) served++
    expect(served).toBeGreaterThan(0)
    expect(served).toBeLessThan(15)
    expect(changed.scheduler.trust('m')).not.toBe('fallback')
  })
})
