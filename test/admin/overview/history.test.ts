/** Counts by step as rates, trailing burn rates and what a shadow saw. */
import { describe, expect, it } from 'vitest'
import { historyFigures } from '../../../src/admin/overview/history.ts'
import { Attainment } from '../../../src/slo/attainment.ts'
import { SHOWN_STEPS, Timeline } from '../../../src/telemetry/timeline.ts'
import { catalog, good, shed } from '../../telemetry/rig.ts'

const key = { model: 'm', class: 'chat', product: 'p' }
const attainment = new Attainment(catalog)
const figuresAt = (timeline: Timeline, nowMs: number) =>
  historyFigures(timeline.history('15m', nowMs), attainment)

describe('the history', () => {
  it('tells requests a second by how they ended, and nothing from before the start', () => {
    const timeline = new Timeline(100_000)
    for (let index = 0; index < 10; index++) timeline.settled(key, good(), undefined, 106_000)
    timeline.settled(key, shed(), undefined, 106_000)
    const { perSec } = figuresAt(timeline, 110_000)
    expect(perSec.good).toHaveLength(SHOWN_STEPS)
    expect(perSec.good.slice(-3)).toEqual([undefined, 0, 2])
    expect(perSec.shed.slice(-2)).toEqual([0, 0.2])
  })

  it('burns by the last five minutes at each step', () => {
    const timeline = new Timeline(0)
    for (let second = 0; second < 900; second++) {
      const bad = second >= 300 && second < 600
      timeline.settled(key, bad ? shed() : good(), undefined, second * 1000)
    }
    const { burns, trailingMs } = figuresAt(timeline, 900_000)
    const burn = burns[0]?.burn ?? []
    expect(trailingMs).toBe(300_000)
    // 99 % leave 1 % of errors: all bad burns a hundred times too fast.
    expect(burn[59]).toBeCloseTo(0)
    expect(burn[89]).toBeCloseTo(50)
    expect(burn[119]).toBeCloseTo(100)
    expect(burn[149]).toBeCloseTo(50)
    expect(burn[179]).toBeCloseTo(0)
  })

  it('has no burn without requests or without an objective', () => {
    const timeline = new Timeline(0)
    timeline.settled({ ...key, class: 'batch' }, good(), undefined, 1)
    timeline.settled(key, good(), undefined, 600_000)
    const { burns } = figuresAt(timeline, 620_000)
    expect(burns.map(({ key: of }) => of.class)).toEqual(['chat'])
    expect(burns[0]?.burn.filter((value) => value !== undefined)).toEqual([0, 0, 0, 0])
  })

  it('sums up what enforcing would have done, and what was attained', () => {
    const timeline = new Timeline(0)
    const refuse = { kind: 'shed', reason: 'slo_unreachable' } as const
    const admit = { kind: 'admit', replicaId: 'r1', permitId: 0 } as const
    const missed = { ...good(), verdict: { kind: 'bad', cause: 'ttft' } } as const
    for (let index = 0; index < 6; index++) timeline.settled(key, good(), admit, 1)
    for (let index = 0; index < 3; index++) timeline.settled(key, missed, refuse, 1)
    timeline.settled(key, good(), refuse, 1)
    expect(figuresAt(timeline, 5000).shadow).toEqual([
      {
        key,
        wouldAdmit: 6,
        wouldWait: 0,
        wouldShed: 4,
        shedThoughGood: 1,
        attainmentRatio: 0.7,
      },
    ])
    expect(figuresAt(new Timeline(0), 5000).shadow).toEqual([])
  })
})
