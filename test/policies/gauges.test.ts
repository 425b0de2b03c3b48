/** What schedulers make of gauges that are old, late or wrong: their own books decide, and nothing ever stands still. */
import { describe, expect, it } from 'vitest'
import { createGate, type Gate } from '../../src/core/gate.ts'
import type { ReplicaReport } from '../../src/core/replica.ts'
import type { Scheduler } from '../../src/core/scheduler.ts'
import { createLeastOutstanding } from '../../src/policies/plain/least-outstanding.ts'
import { createSluice } from '../../src/policies/sluice.ts'
import { judge } from '../../src/slo/judge.ts'
import { reportOf, settingsOf, someOffer } from '../core/core-rig.ts'
import { sloOf } from '../slo/facts.ts'

/** A class that waits, so that what is held shows as waiting and not as shed. */
const PATIENT = sloOf({ ttftMs: 60_000, tpotMs: 1000, maxWaitMs: 600_000, overload: 'wait' })

interface World {
  readonly gate: Gate
  /** Where each dispatch went, in order. */
  readonly places: string[]
  offer(nowMs: number): void
  tick(nowMs: number): void
  report(change: ReplicaReport, nowMs: number): void
}

/** A gate whose engines bring a first token at once, so that only slots and caches hold anything. */
function world(scheduler: Scheduler, reports: readonly ReplicaReport[]): World {
  const gate = createGate({ settings: settingsOf(), scheduler, judge })
  const places: string[] = []
  const handle = (event: Parameters<Gate['handle']>[0], nowMs: number): void => {
    for (const effect of gate.handle(event, nowMs)) {
      if (effect.kind !== 'dispatch') continue
      places.push(effect.replicaId)
      handle({ kind: 'firstToken', permitId: effect.permitId }, nowMs)
    }
  }
  for (const replica of reports) handle({ kind: 'replicaChanged', replica }, 0)
  const offer = (nowMs: number) => someOffer({ slo: PATIENT, receivedAtMs: nowMs, promptTokens: 20 })
  return {
    gate,
    places,
    offer: (nowMs) => handle({ kind: 'offer', offer: offer(nowMs) }, nowMs),
    tick: (nowMs) => handle({ kind: 'tick' }, nowMs),
    report: (replica, nowMs) => handle({ kind: 'replicaChanged', replica }, nowMs),
  }
}

function gauges(kvUsageRatio: number, seenAtMs: number, runningRequests = 0): Pick<ReplicaReport, 'gauges'> {
  return { gauges: { seenAtMs, runningRequests, waitingRequests: 0, kvUsageRatio } }
}

describe('a full KV cache on the page', () => {
  it('holds work back while it is news, and no longer when the page has stopped coming', () => {
    const { gate, places, offer, tick } = world(createSluice(), [reportOf('r1', gauges(0.99, 0))])
    offer(1)
    offer(2)
    expect(places).toEqual(['r1'])
    tick(5000)
    expect(gate.state.waiting.requests).toBe(1)
    tick(60_000)
    expect(places).toEqual(['r1', 'r1'])
  })

  it('sends work to the replica whose page says otherwise', () => {
    const full = reportOf('r1', gauges(0.99, 0))
    const { places, offer } = world(createSluice(), [full, reportOf('r2', gauges(0.1, 0))])
    for (let index = 0; index < 6; index += 1) offer(1)
    expect(places.filter((place) => place === 'r2').length).toBeGreaterThanOrEqual(5)
  })
})

describe('a page that lags', () => {
  it('lets no more in than the engine has slots, however idle it looks', () => {
    const idle = (nowMs: number) => reportOf('r1', { limits: { maxNumSeqs: 4 }, ...gauges(0, nowMs) })
    const { gate, offer, report } = world(createSluice(), [idle(0)])
    for (let index = 0; index < 50; index += 1) {
      offer(index)
      report(idle(index), index)
    }
    expect(gate.inFlight).toBe(4)
    expect(gate.state.waiting.requests).toBe(46)
  })

  it.each([
    ['sluice', () => createSluice()],
    ['least outstanding', () => createLeastOutstanding()],
  ])('gives a burst to both replicas alike, though one looks less loaded (%s)', (_name, scheduler) => {
    const loads = [reportOf('r1', gauges(0, 0, 0)), reportOf('r2', gauges(0, 0, 1))]
    const { places, offer } = world(scheduler(), loads)
    for (let index = 0; index < 8; index += 1) offer(1)
    expect(places.filter((place) => place === 'r1')).toHaveLength(4)
    expect(places.filter((place) => place === 'r2')).toHaveLength(4)
  })
})
