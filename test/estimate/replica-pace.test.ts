/** The pace of replicas: a slow one is found, a common slowness is the model's, and a change is told from noise. */
import { describe, expect, it } from 'vitest'
import {
  forgetPace,
  type GroupPace,
  groupPace,
  learnPace,
  type PaceChange,
  slownessOf,
} from '../../src/estimate/replica-pace.ts'
import { Rng } from '../../src/sim/rng.ts'

/** What is to be expected of a window's ratio; real windows are steadier than the model assumes. */
const SIGMA_RATIO = 0.15

/** One window of a replica whose steps take `truth` times those of the model. */
function window(pace: GroupPace, id: string, truth: number, rng: Rng, noise = 0.1): PaceChange {
  const ratio = (truth / slownessOf(pace, id)) * rng.logNormal(1, noise)
  return learnPace(pace, id, { ratio, sigmaRatio: SIGMA_RATIO, sigmas: (ratio - 1) / SIGMA_RATIO })
}

function windowsUntil(pace: GroupPace, id: string, truth: number, wanted: PaceChange): number {
  const rng = new Rng(8)
  for (let count = 1; count <= 60; count++) if (window(pace, id, truth, rng) === wanted) return count
  return Number.POSITIVE_INFINITY
}

function settled(ids: readonly string[], truths: readonly number[], rounds = 60): GroupPace {
  const rng = new Rng(3)
  const pace = groupPace()
  for (let round = 0; round < rounds; round++) {
    for (const [i, id] of ids.entries()) window(pace, id, truths[i] ?? 1, rng)
  }
  return pace
}

describe('the pace of replicas', () => {
  it('finds the slow one within some dozen windows, relative to its group', () => {
    const pace = settled(['a', 'b', 'c'], [2, 1, 1])
    expect(slownessOf(pace, 'a') / slownessOf(pace, 'b')).toBeGreaterThan(1.8)
    expect(slownessOf(pace, 'a') / slownessOf(pace, 'b')).toBeLessThan(2.2)
    const product = ['a', 'b', 'c'].reduce((all, id) => all * slownessOf(pace, id), 1)
    expect(product).toBeCloseTo(1, 6)
  })

  it('leaves to the model what a replica alone, or all of them, take longer', () => {
    expect(slownessOf(settled(['a'], [2], 8), 'a')).toBe(1)
    const pace = settled(['a', 'b'], [1.1, 1.1])
    expect(slownessOf(pace, 'a')).toBeGreaterThan(0.93)
    expect(slownessOf(pace, 'a')).toBeLessThan(1.07)
  })

  it('blames nobody while the model itself is unsure', () => {
    const pace = groupPace()
    for (let i = 0; i < 20; i++) {
      learnPace(pace, 'a', { ratio: 3, sigmaRatio: 4, sigmas: 0.5 })
      learnPace(pace, 'b', { ratio: 1, sigmaRatio: 4, sigmas: 0 })
    }
    expect(slownessOf(pace, 'a')).toBeLessThan(1.15)
  })

  it('calls no change in a million steady windows', () => {
    const rng = new Rng(5)
    const pace = groupPace()
    let changes = 0
    for (let i = 0; i < 500_000; i++) {
      if (window(pace, 'a', 1, rng, SIGMA_RATIO) !== 'none') changes++
      if (window(pace, 'b', 1, rng, SIGMA_RATIO) !== 'none') changes++
    }
    expect(changes).toBeLessThanOrEqual(2)
    expect(slownessOf(pace, 'a')).toBeGreaterThan(0.9)
    expect(slownessOf(pace, 'a')).toBeLessThan(1.1)
  })

  it('sees soon that one replica has changed, and learns the new pace faster', () => {
    const pace = settled(['a', 'b', 'c'], [1, 1, 1])
    expect(windowsUntil(pace, 'a', 2, 'replica')).toBeLessThanOrEqual(6)
    const rng = new Rng(6)
    for (let i = 0; i < 3; i++) window(pace, 'a', 2, rng)
    expect(slownessOf(pace, 'a') / slownessOf(pace, 'b')).toBeGreaterThan(1.7)
  })

  it('sees soon that the only replica, or all of them, have changed', () => {
    expect(windowsUntil(settled(['a'], [1]), 'a', 2, 'group')).toBeLessThanOrEqual(6)
    const pace = settled(['a', 'b'], [1, 1])
    const rng = new Rng(7)
    const seen = Array.from({ length: 12 }, () => [
      window(pace, 'a', 0.4, rng),
      window(pace, 'b', 0.4, rng),
    ]).flat()
    expect(seen).toContain('group')
  })

  it('keeps a replica within a third and three times its group, whatever it shows', () => {
    const pace = groupPace()
    for (let i = 0; i < 50; i++) {
      learnPace(pace, 'a', { ratio: 1e6, sigmaRatio: 0.1, sigmas: 1e6 })
      learnPace(pace, 'b', { ratio: 0, sigmaRatio: 0.1, sigmas: -10 })
      for (const id of ['a', 'b']) {
        expect(slownessOf(pace, id)).toBeLessThan(3.01)
        expect(slownessOf(pace, id)).toBeGreaterThan(0.33)
      }
    }
  })

  it('forgets a replica that went, and takes a new one for one like the others', () => {
    const pace = settled(['a', 'b'], [2, 1])
    forgetPace(pace, 'a')
    expect(slownessOf(pace, 'b')).toBeCloseTo(1, 6)
    expect(slownessOf(pace, 'a')).toBe(1)
    learnPace(pace, 'c', { ratio: 1, sigmaRatio: 0.1, sigmas: 0 })
    expect(slownessOf(pace, 'c')).toBeCloseTo(1, 6)
    forgetPace(pace, 'b')
    forgetPace(pace, 'c')
    expect(pace.sumLogSlowness).toBe(0)
  })
})
