/** What was offered lately: rates over minutes, sizes over an hour, refused requests included. */
import { describe, expect, it } from 'vitest'
import type { DecisionRecord } from '../../src/core/records.ts'
import { OfferedDemand } from '../../src/slo/offered.ts'
import { decisionOf } from '../telemetry/rig.ts'
import { offerOf, settlementOf, sloOf } from './facts.ts'

const chat = sloOf({ name: 'chat', ttftMs: 500 })
const batch = sloOf({ name: 'batch' })

function setUp() {
  const demand = new OfferedDemand(0)
  const ask = (nowMs: number, change: Partial<DecisionRecord> = {}, slo = chat): void => {
    demand.decided('m', slo.name, decisionOf(offerOf(slo, { promptTokens: 400 }), change), nowMs)
  }
  const answer = (nowMs: number, outputTokens: number, slo = chat): void => {
    demand.settled('m', slo.name, settlementOf({ offer: offerOf(slo), outputTokens }), nowMs)
  }
  return { demand, ask, answer }
}

describe('OfferedDemand', () => {
  it('tells rates and mean sizes, of what was refused as of what was served', () => {
    const { demand, ask, answer } = setUp()
    for (let second = 0; second < 60; second++) {
      ask(second * 1000)
      ask(second * 1000, { verdict: { kind: 'shed', reason: 'slo_unreachable' }, candidates: [] })
    }
    answer(60_000, 100)
    answer(60_000, 300)
    expect(demand.of('m', 60_000)).toEqual([
      {
        slo: chat,
        requestsPerSec: 2,
        promptTokens: 400,
        uncachedTokens: 300,
        outputTokens: 200,
        sequences: 1,
      },
    ])
  })

  it('counts a request once, however often it is rerouted', () => {
    const { demand, ask, answer } = setUp()
    ask(0)
    ask(100, { attempt: 2 })
    answer(200, 10)
    expect(demand.of('m', 60_000)?.[0]?.requestsPerSec).toBeCloseTo(1 / 60)
  })

  it('says nothing before it has seen half a minute, nor while no answer has ended', () => {
    const { demand, ask, answer } = setUp()
    ask(0)
    expect(demand.of('m', 60_000)).toBeUndefined()
    answer(60_000, 10)
    expect(demand.of('m', 60_000)).toHaveLength(1)
    const young = setUp()
    young.ask(0)
    young.answer(10, 10)
    expect(young.demand.of('m', 20_000)).toBeUndefined()
  })

  it('takes the answers of other classes for one whose own have not ended', () => {
    const { demand, ask, answer } = setUp()
    ask(0)
    ask(0, {}, batch)
    answer(10, 50)
    expect(demand.of('m', 60_000)?.map(({ outputTokens }) => outputTokens)).toEqual([50, 50])
  })

  it('forgets demand within minutes, sizes within an hour, and names that left the file at once', () => {
    const { demand, ask, answer } = setUp()
    ask(0)
    answer(10, 50)
    expect(demand.of('m', 400_000)).toEqual([])
    ask(400_000)
    expect(demand.of('m', 400_000)?.[0]?.outputTokens).toBe(50)
    demand.configure(['m'], ['other'])
    expect(demand.of('m', 400_000)).toEqual([])
  })

  it('takes a clock that is set back for one that stands still', () => {
    const { demand, ask, answer } = setUp()
    ask(60_000)
    answer(60_000, 10)
    expect(demand.of('m', -1_000_000)?.[0]?.requestsPerSec).toBeCloseTo(1 / 60)
  })
})
