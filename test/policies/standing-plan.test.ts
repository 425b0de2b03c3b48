/** A plan of a moment ago says what it said, less whoever has left, and is void once what it was made of has changed. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Offer, OverloadAction } from '../../src/core/request.ts'
import { newWaiter, type Waiter } from '../../src/core/waiting-room.ts'
import type { Job } from '../../src/policies/job.ts'
import { outlook } from '../../src/policies/outlook.ts'
import { planPromised } from '../../src/policies/promised.ts'
import { openRound, type PoolQuestion, type Round } from '../../src/policies/round.ts'
import { recall, type StandingPlan, stand } from '../../src/policies/standing-plan.ts'
import { LEFTOVERS_TRIED, readWaiters } from '../../src/policies/waiting-jobs.ts'
import { keepingOf } from '../../src/policies/wide.ts'
import { someOffer } from '../core/core-rig.ts'
import { sloOf } from '../slo/facts.ts'
import { type Flying, LEARNT, ledgerOf, NOW_MS, roundOf } from './policy-rig.ts'

const TTFT_MS = 400
const STREAM: Flying = { promptTokens: 300, sequences: 1, made: 20 }

const request = fc.record({
  /** When its promise breaks, from the first plan on. */
  dueMs: fc.oneof(fc.integer({ min: -20, max: 60 }), fc.integer({ min: 60, max: TTFT_MS })),
  promised: fc.boolean(),
  overload: fc.constantFrom<OverloadAction>('shed', 'shed', 'demote', 'wait'),
  promptTokens: fc.integer({ min: 1, max: 3000 }),
})
type Request = typeof request extends fc.Arbitrary<infer T> ? T : never

const nobody = fc.constant<readonly Request[]>([])
const event = fc.record({
  afterMs: fc.integer({ min: 0, max: 3 }),
  /** Who leaves, among those who wait. */
  leave: fc.array(fc.nat({ max: 40 }), { maxLength: 3 }),
  come: fc.oneof({ weight: 5, arbitrary: nobody }, { weight: 1, arbitrary: fc.array(request) }),
  /** Whoever left last fails and waits again. */
  back: fc.constantFrom(false, false, false, false, false, true),
})
type Event = typeof event extends fc.Arbitrary<infer T> ? T : never

/** With a promise of the first token, or of nothing. */
function firstTokenOffer({ dueMs, promised, overload, promptTokens }: Request): Offer {
  const slo = sloOf({ ...(promised ? { ttftMs: TTFT_MS } : {}), overload, maxWaitMs: 60_000 })
  return someOffer({ slo, promptTokens, receivedAtMs: NOW_MS + dueMs - TTFT_MS })
}

/** With a promise of the whole answer: how long that will take is a guess, so that its deadline is one too. */
function wholeAnswerOffer({ dueMs, overload, promptTokens }: Request): Offer {
  const slo = sloOf({ e2eMs: TTFT_MS, overload, maxWaitMs: 60_000 })
  const maxOutputTokens = 1 + (promptTokens % 20)
  return someOffer({ slo, promptTokens, maxOutputTokens, receivedAtMs: NOW_MS + dueMs - TTFT_MS })
}

/** A pool whose waiters come and go. */
class Scene {
  readonly #round
  readonly #offerOf: (request: Request) => Offer
  readonly gone = new Set<Waiter>()
  nowMs = NOW_MS

  constructor(
    fleet: readonly (readonly Flying[])[],
    waiting: readonly Request[],
    offerOf: (request: Request) => Offer,
  ) {
    this.#round = roundOf(fleet)
    this.#offerOf = offerOf
    for (const one of waiting) this.waiting.add(newWaiter(offerOf(one), NOW_MS))
  }

  get waiting() {
    return this.#round.state.waiting
  }

  get question(): PoolQuestion {
    const { pool, state, learnt, without } = this.#round
    return { pool, state, learnt, without, nowMs: this.nowMs }
  }

  views() {
    return this.#round.views.map(({ ledger }) => outlook(ledger, LEARNT, 1, this.nowMs))
  }

  take({ afterMs, leave, come, back }: Event): void {
    this.nowMs += afterMs
    for (const nth of leave) {
      const waiters = [...this.waiting]
      const waiter = waiters[nth % Math.max(1, waiters.length)]
      if (waiter === undefined) continue
      this.waiting.remove(waiter.offer.requestId)
      this.gone.add(waiter)
    }
    for (const one of come) this.waiting.add(newWaiter(this.#offerOf(one), this.nowMs))
    const last = [...this.gone].at(-1)
    if (back && last !== undefined && this.waiting.get(last.offer.requestId) === undefined)
      this.waiting.add({ ...last, attempt: 2 })
  }

  planAnew(): StandingPlan {
    const { jobs, leftovers } = readWaiters(this.question, this.views())
    const round = openRound(this.question, jobs, this.views())
    const plan = stand({ jobs, leftovers, ...planPromised(round, jobs), round })
    // As if a gate had held somebody back then.
    round.heldByTime = true
    return plan
  }

  /** Those parts of a plan that somebody's leaving changes. */
  lessGone({ jobs, leftovers, plan }: StandingPlan) {
    const waits = (job: Job) => !this.gone.has(job.waiter)
    const kept = plan.kept.filter(({ job }) => waits(job))
    const dropped = plan.dropped.filter(({ job }) => waits(job))
    return { jobs: jobs.filter(waits), leftovers: leftovers.filter(waits), plan: { kept, dropped } }
  }
}

/** How often a script came to what it is to show. */
interface Tally {
  smaller: number
  withNewcomers: number
  overdue: number
  pastDeadline: number
  spent: number
}
const newTally = (): Tally => ({ smaller: 0, withNewcomers: 0, overdue: 0, pastDeadline: 0, spent: 0 })

/** True when a promise of these jobs that could be kept when they were planned can't be any more, by guess or for certain. */
function anyOverdue(jobs: readonly Job[], madeAtMs: number, nowMs: number): boolean {
  const isOverdue = (atMs = Number.POSITIVE_INFINITY) => atMs > madeAtMs && atMs <= nowMs
  return jobs.some(({ deadlineAtMs, breaksAtMs }) => isOverdue(deadlineAtMs) || isOverdue(breaksAtMs))
}

/** What a round has read, without what it was read from. */
function readOf({ nowMs, trust, tightestTpotMs, tightestTtftMs, heldByTime }: Round) {
  return { nowMs, trust, tightestTpotMs, tightestTtftMs, heldByTime }
}

/** Plays it as `planPool` does: asks for the last plan after each event, and plans anew where there is none. */
function play(scene: Scene, events: readonly Event[], tally: Tally): void {
  const keeping = keepingOf(scene.views().length)
  let made = scene.planAnew()
  let { added } = scene.waiting
  let known = made.jobs
  for (const each of events) {
    scene.take(each)
    const { nowMs, question } = scene
    const views = scene.views()
    const recalled = recall(question, views)
    const expected = scene.lessGone(made)
    const { madeAtMs } = made
    const hasNewcomers = scene.waiting.added > added
    const ageMs = nowMs - madeAtMs
    const old = hasNewcomers ? ageMs >= keeping.blindPlanMs : ageMs > keeping.planMs
    const overdue = anyOverdue(expected.jobs, madeAtMs, nowMs)
    // The few leftovers that were read have all gone, and there may be more.
    const spent = made.leftovers.length === LEFTOVERS_TRIED && expected.leftovers.length === 0
    if (!old && overdue) tally.overdue++
    if (!old && !overdue && spent) tally.spent++
    if (old || overdue || spent) expect(recalled?.madeAtMs).toBeUndefined()
    // One that left since the last look may void it too.
    else if (!anyOverdue(known, madeAtMs, nowMs)) expect(recalled?.madeAtMs).toBe(madeAtMs)
    if (recalled === undefined) {
      made = scene.planAnew()
      added = scene.waiting.added
      known = made.jobs
      continue
    }
    const { round: before, ...parts } = made
    const { round, ...recalledParts } = recalled
    expect(recalledParts).toEqual({ ...parts, ...expected, ...(hasNewcomers ? { knownAdded: added } : {}) })
    expect(round.views === views && round.state === question.state).toBe(true)
    expect(readOf(round)).toEqual({ ...readOf(before), nowMs, heldByTime: false })
    if (recalled.jobs.length < known.length) tally.smaller++
    if (hasNewcomers) tally.withNewcomers++
    if (recalled.jobs.some(({ deadlineAtMs = nowMs }) => deadlineAtMs < madeAtMs)) tally.pastDeadline++
    known = recalled.jobs
  }
}

const waiting = fc.array(request, { minLength: 1, maxLength: 25, size: 'max' })
const events = fc.array(event, { minLength: 1, maxLength: 25, size: 'max' })

describe('a plan that stands', () => {
  it('is what it was less whoever has left, until a deadline in it passes, it is old, or somebody comes', () => {
    const tally = newTally()
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 3 }), waiting, events, (replicas, rows, script) => {
        const fleet = Array.from({ length: replicas }, () => [STREAM, STREAM])
        play(new Scene(fleet, rows, firstTokenOffer), script, tally)
      }),
      { numRuns: 150, seed: 4 },
    )
    expect(tally.smaller).toBeGreaterThan(100)
    expect(tally.overdue).toBeGreaterThan(20)
    expect(tally.spent).toBeGreaterThan(5)
    expect(tally.withNewcomers).toBe(0)
  })

  it('stands in a wide pool although others have come, and says after how many it was made', () => {
    const tally = newTally()
    fc.assert(
      fc.property(fc.integer({ min: 17, max: 20 }), waiting, events, (replicas, rows, script) => {
        const fleet = Array.from({ length: replicas }, () => [STREAM])
        play(new Scene(fleet, rows, firstTokenOffer), script, tally)
      }),
      { numRuns: 40, seed: 4 },
    )
    expect(tally.smaller).toBeGreaterThan(50)
    expect(tally.withNewcomers).toBeGreaterThan(50)
  })

  it('stands although a deadline that is only guessed had passed before it was made', () => {
    const tally = newTally()
    fc.assert(
      fc.property(waiting, events, (rows, script) => {
        play(new Scene([[STREAM, STREAM]], rows, wholeAnswerOffer), script, tally)
      }),
      { numRuns: 150, seed: 4 },
    )
    expect(tally.pastDeadline).toBeGreaterThan(50)
    expect(tally.overdue).toBeGreaterThan(50)
  })

  it('is void for other replicas', () => {
    const scene = new Scene([[], [STREAM], []], [], firstTokenOffer)
    scene.planAnew()
    const views = scene.views()
    const [first, second, third] = views
    if (first === undefined || second === undefined || third === undefined) throw new Error('three replicas')
    const newcomer = outlook(ledgerOf('r2', []), LEARNT, 1, NOW_MS)
    for (const others of [
      [],
      [first, second],
      [...views, newcomer],
      [first, second, newcomer],
      [second, first, third],
    ])
      expect(recall(scene.question, others)?.madeAtMs).toBeUndefined()
    expect(recall(scene.question, views)?.madeAtMs).toBe(NOW_MS)
  })
})
