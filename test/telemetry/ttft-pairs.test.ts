/** Predicted and real times to first token, side by side. */
import { describe, expect, it } from 'vitest'
import { TtftPairs } from '../../src/telemetry/ttft-pairs.ts'
import { good } from './rig.ts'

const settled = (predictedTtftMs: number, ttftMs: number) => ({
  ...good(),
  replicaId: 'r1',
  predictedTtftMs,
  ttftMs,
})

describe('pairs of TTFT', () => {
  it('are told as medians over the same requests', () => {
    const pairs = new TtftPairs()
    expect(pairs.of('r1', 0)).toBeUndefined()
    for (const ms of [100, 300, 200]) pairs.settled(settled(ms, ms + 50), 0)
    expect(pairs.of('r1', 0)).toEqual({ samples: 3, predictedMs: 200, realMs: 250 })
    pairs.settled(settled(400, 500), 0)
    expect(pairs.of('r1', 0)).toEqual({ samples: 4, predictedMs: 250, realMs: 300 })
  })

  it('forget what is old or too much, and take nothing that was not predicted', () => {
    const pairs = new TtftPairs()
    pairs.settled(good(), 0)
    expect(pairs.of('r1', 0)).toBeUndefined()
    for (let index = 0; index < 200; index++) pairs.settled(settled(index, index), 0)
    expect(pairs.of('r1', 1000)?.samples).toBe(64)
    expect(pairs.of('r1', 300_001)).toBeUndefined()
  })
})
