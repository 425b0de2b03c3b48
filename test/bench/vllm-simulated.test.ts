/** Holds what lays the simulator beside a real engine to its words: one pace for both, and an honest count of orders. */
import { describe, expect, it } from 'vitest'
import { EngineModel } from '../../src/sim/engine-model.ts'
import type { EngineProfile } from '../../src/sim/profiles.ts'

interface Row {
  readonly workload: string
  readonly load: number
  readonly arm: string
  readonly goodPerSec: number
  readonly simulatedPerSec: number
}
interface Bench {
  formatOrder(rows: readonly Row[]): string
  pacedProfile(product: object, profile: EngineProfile, shape: object, ratePerSec: number): EngineProfile
}

const load = async (name: string): Promise<object> =>
  import(new URL(`../../bench/vllm/${name}.mjs`, import.meta.url).href)
const bench = Object.assign({}, await load('simulated')) as Bench

/** Rounds of one arm: what the engine did, and what the simulator says. */
const rowsOf = (arm: string, real: readonly number[], simulated: readonly number[]): Row[] =>
  real.map((goodPerSec, round) => ({
    workload: 'mixed',
    load: 2,
    arm,
    goodPerSec,
    simulatedPerSec: simulated[round] ?? Number.NaN,
  }))

describe('the order of arms', () => {
  const cap = rowsOf('cap:8', [10, 11, 10], [10, 10, 10])

  it('is the same where who is clearly ahead on the engine is ahead in the simulator', () => {
    const text = bench.formatOrder([...cap, ...rowsOf('sluice', [20, 21, 20], [12, 11, 12])])
    expect(text).toMatch(/1 of 1 pairs/)
    expect(text).not.toMatch(/not so/)
  })

  it('is told where it differs', () => {
    const text = bench.formatOrder([...cap, ...rowsOf('sluice', [20, 21, 20], [9, 9, 9])])
    expect(text).toMatch(/0 of 1 pairs/)
    expect(text).toMatch(/not so: mixed 2x, sluice before cap:8/)
  })

  it('is not asked of arms within their interval, nor of arms with one row', () => {
    expect(bench.formatOrder([...cap, ...rowsOf('sluice', [9, 12, 10.5], [1, 2, 3])])).toMatch(/0 of 0 pairs/)
    expect(bench.formatOrder([...cap.slice(0, 1), ...rowsOf('sluice', [30], [1])])).toMatch(/0 of 0 pairs/)
  })
})

describe('the simulated engine', () => {
  const profile: EngineProfile = {
    id: 'test',
    source: 'invented',
    prefill: { floorMs: 0, baseMs: 6, perTokenMs: 0.1, perTokenContextMs: 0 },
    decode: { baseMs: 3, perSequenceMs: 0.2, perContextTokenMs: 0 },
    stepOverheadMs: 0,
    requestOverheadMs: 4,
    kvCapacityTokens: 12_288,
    defaults: { maxNumSeqs: 16, maxNumBatchedTokens: 256 },
  }
  const shape = { promptMedian: 100, promptSigma: 0.5, promptMax: 300, answerMin: 40, answerMax: 60 }

  it('is made as fast as the real one by one factor for all its costs', () => {
    const slow = bench.pacedProfile({ EngineModel }, profile, shape, 5)
    const quick = bench.pacedProfile({ EngineModel }, profile, shape, 10)
    expect(slow.decode.baseMs / quick.decode.baseMs).toBeCloseTo(2, 1)
    expect(slow.prefill.perTokenMs / slow.decode.baseMs).toBeCloseTo(0.1 / 3, 5)
    // Paced once, it needs no more pacing.
    const again = bench.pacedProfile({ EngineModel }, quick, shape, 10)
    expect(again.decode.baseMs / quick.decode.baseMs).toBeCloseTo(1, 1)
  })
})
