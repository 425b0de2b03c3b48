/** Decisions before engines that compute prompts apart from those that answer, told so and not told. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ReplicaLedger } from '../../src/core/ledger.ts'
import type { Scheduler } from '../../src/core/scheduler.ts'
import { newWaiter } from '../../src/core/waiting-room.ts'
import { slack } from '../../src/policies/admission/slack.ts'
import { jobOf } from '../../src/policies/job.ts'
import { Learnt } from '../../src/policies/learnt.ts'
import { outlook } from '../../src/policies/outlook.ts'
import { depthTokens, plannedOption } from '../../src/policies/plan-state.ts'
import { createSluice } from '../../src/policies/sluice.ts'
import { profile } from '../../src/sim/profiles.ts'
import { summarize } from '../../src/sim/report.ts'
import { simulate } from '../../src/sim/run.ts'
import { workloadSource } from '../../src/sim/source.ts'
import { namedWorkload } from '../../src/sim/workloads.ts'
import { inFlightOf, reportOf, someOffer } from '../core/core-rig.ts'
import { sloOf } from '../slo/facts.ts'

const NOW_MS = 1000
const SLO = sloOf({ ttftMs: 600, tpotMs: 30 })

interface Stream {
  readonly promptTokens: number
  readonly made: number
}
const streams: fc.Arbitrary<readonly Stream[]> = fc.array(
  fc.record({ promptTokens: fc.integer({ min: 1, max: 4000 }), made: fc.integer({ min: 1, max: 80 }) }),
  { minLength: 1, maxLength: 12 },
)

function viewOf(rows: readonly Stream[], prefillEngines: number, learnt = new Learnt({})) {
  const limits = { maxNumSeqs: 64, maxNumBatchedTokens: 2048, prefillEngines }
  const ledger = new ReplicaLedger(reportOf('r1', { limits }))
  for (const [id, { promptTokens, made }] of rows.entries()) {
    const inFlight = inFlightOf(id, someOffer({ promptTokens, slo: SLO }), { dispatchedAtMs: 0 })
    ledger.dispatch(inFlight)
    ledger.firstToken(id, 200)
    ledger.progress(inFlight, made, NOW_MS)
  }
  return outlook(ledger, learnt, 1, NOW_MS)
}

describe('a prompt for engines of its own', () => {
  it('waits for no stream and makes none wait, whatever runs', () => {
    fc.assert(
      fc.property(
        streams,
        fc.integer({ min: 1, max: 20_000 }),
        fc.integer({ min: 1, max: 3 }),
        (rows, promptTokens, engines) => {
          const learnt = new Learnt({})
          const view = viewOf(rows, engines, learnt)
          const waiter = newWaiter(someOffer({ promptTokens, slo: SLO }), NOW_MS)
          const job = jobOf(waiter, { value: 1, owed: false }, learnt, 12, NOW_MS, 100)
          const candidate = { view, job, uncachedTokens: promptTokens, depthTokens: 500, nowMs: NOW_MS }
          for (const roomRatio of [0.8, 1])
            expect(slack.passes({ ...candidate, roomRatio, kvPeakRatio: () => 0 })).toBe(true)
          expect(view.renewalMs).toBe(0)
          expect(plannedOption(job, view, 0, 30).pauseMs).toBe(0)
        },
      ),
    )
  })

  it('takes one of several, and each of them keeps a backlog', () => {
    const learnt = new Learnt({})
    const job = jobOf(
      newWaiter(someOffer({ promptTokens: 3000 }), NOW_MS),
      { value: 1, owed: false },
      learnt,
      12,
      NOW_MS,
      100,
    )
    const views = [1, 2].map((engines) => viewOf([{ promptTokens: 100, made: 5 }], engines))
    const [one, two] = views.map((view) => plannedOption(job, view, 0, 30))
    expect((two?.prefillMs ?? 0) / (one?.prefillMs ?? 0)).toBeCloseTo(0.5, 6)
    const soonest = (option = one) => (option?.prefillMs ?? 0) + (option?.latencyMs ?? 0)
    expect(soonest(two)).toBeCloseTo(soonest(one), 6)
    const [depthOfOne = 0, depthOfTwo = 0] = views.map((view) => depthTokens(view, 600, 1))
    expect(depthOfTwo).toBeCloseTo(2 * depthOfOne, 6)
  })
})

/** Reads such a fleet as if one engine did both, as nobody can tell from outside. */
class Untold extends Learnt {
  override groupOf({ report }: ReplicaLedger) {
    return this.group(report.groupId)
  }
}

interface Result {
  readonly good: number
  readonly errors: readonly number[]
}

/** Notes how far each first token came from what was said at its dispatch, once some have been learnt from. */
function noted(scheduler: Scheduler, errors: number[]): Scheduler {
  let seen = 0
  return {
    ...scheduler,
    firstToken(inFlight, ledger, nowMs) {
      const { predictedTtftMs, dispatchedAtMs, offer } = inFlight
      const tookMs = nowMs - dispatchedAtMs
      if (predictedTtftMs !== undefined && ++seen > 100)
        errors.push(Math.abs(predictedTtftMs - (dispatchedAtMs - offer.receivedAtMs) - tookMs) / tookMs)
      scheduler.firstToken(inFlight, ledger, nowMs)
    },
  }
}

function run(workload: string, perSec: number, makeLearnt: () => Learnt): Result {
  const errors: number[] = []
  const goods = [1, 2].map((seed) => {
    const disaggregated = {
      prefillEngines: 1,
      decodeEngines: 1,
      transferBaseMs: 2,
      transferPerTokenMs: 0.0026,
    }
    const engine = { profile: profile('Llama-3.1-8B/H100-80G-SXM/tp1'), jitterRatio: 0.05, disaggregated }
    const result = simulate({
      replicas: [{ engine }, { engine }],
      requests: workloadSource(namedWorkload(workload)).streamAt(perSec, 20_000, seed),
      createScheduler: () => noted(createSluice({ learnt: makeLearnt() }), errors),
      seed,
      closesAtMs: 20_000,
      drainMs: 10_000,
    })
    return summarize(result, 6000, 20_000).total.attainmentRatio ?? 0
  })
  return { good: (goods[0] ?? 0) / 2 + (goods[1] ?? 0) / 2, errors: errors.sort((a, b) => a - b) }
}

const median = ({ errors }: Result): number => errors[Math.floor(errors.length / 2)] ?? Number.NaN

describe('Sluice before prefill and decode pools', () => {
  it('predicts long prompts three times as well when it is told, and serves no fewer', () => {
    const told = run('long-prompts', 30, () => new Learnt({}))
    const untold = run('long-prompts', 30, () => new Untold({}))
    expect(told.errors.length).toBeGreaterThan(200)
    expect(median(told)).toBeLessThan(0.1)
    expect(median(told)).toBeLessThan(median(untold) / 3)
    expect(told.good).toBeGreaterThanOrEqual(untold.good)
  })
})
