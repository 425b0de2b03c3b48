/** The plan follows seed, phases and mix. */
import { describe, expect, it } from 'vitest'
import type { SloClass } from '../../src/core/request.ts'
import { planLoad } from '../../src/load/plan.ts'
import { WORKLOADS } from '../../src/sim/workloads.ts'

const classes: Record<string, SloClass> = Object.fromEntries(
  WORKLOADS.map(({ name }) => [
    name,
    { name, ttftPer1kTokensMs: 0, weight: 1, overload: 'shed', maxWaitMs: 0 },
  ]),
)
const phases = [
  { name: '0.5x', durationMs: 10_000, ratePerSec: 5 },
  { name: '2x', durationMs: 10_000, ratePerSec: 20 },
]

describe('planLoad', () => {
  it('gives the same plan for the same seed and another for another', () => {
    const plan = (seed: number) => [...planLoad({ seed, phases, classes })]
    expect(plan(1)).toEqual(plan(1))
    expect(plan(2)).not.toEqual(plan(1))
  })

  it('puts each request into the phase of its instant, in order, at about the rate of that phase', () => {
    const plan = [...planLoad({ seed: 1, phases, classes })]
    for (const { atMs, phase } of plan) expect(phase).toBe(atMs <= 10_000 ? '0.5x' : '2x')
    expect(plan.map(({ atMs }) => atMs)).toEqual(plan.map(({ atMs }) => atMs).sort((a, b) => a - b))
    const early = plan.filter(({ phase }) => phase === '0.5x').length
    expect(early).toBeGreaterThan(25)
    expect(plan.length - early).toBeGreaterThan(150)
  })

  it('names the class that has no promise', () => {
    expect(() => [...planLoad({ seed: 1, phases, classes: {} })]).toThrow(/class ".+", which is not among/)
  })
})
