/** The breaker: what opens it, how it is probed, and that it always comes back. */
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { type Breaker, type BreakerState, createBreaker } from '../../src/upstream/breaker.ts'

const OPTIONS = { faultRatio: 0.5, minExchanges: 5, windowMs: 10_000, resetMs: 5_000 }

let breaker: Breaker
let changes: BreakerState[]
let probes: { readonly pass: () => void; readonly fail: () => void }[]

beforeEach(() => {
  vi.useFakeTimers()
  changes = []
  probes = []
  const probe = (): Promise<void> =>
    new Promise((resolve, reject) => {
      probes.push({ pass: resolve, fail: () => reject(new Error('no token')) })
    })
  breaker = createBreaker(OPTIONS, probe, (state) => changes.push(state))
})
afterEach(() => {
  breaker.close()
  expect(vi.getTimerCount()).toBe(0)
  vi.useRealTimers()
})

async function settle(): Promise<void> {
  await vi.advanceTimersByTimeAsync(0)
}
async function open(): Promise<void> {
  for (let index = 0; index < 6; index += 1) breaker.fault('reset')
  await settle()
}

describe('a breaker', () => {
  it('opens when most exchanges of the window fail, and not on a few', async () => {
    for (let index = 0; index < 4; index += 1) breaker.fault('reset')
    await settle()
    expect(breaker.state).toBe('closed')
    breaker.fault('reset')
    await settle()
    expect(breaker.state).toBe('open')
    expect(changes).toEqual(['open'])
  })

  it('opens on faults in a row, however many successes are in the window', async () => {
    for (let index = 0; index < 100; index += 1) breaker.success()
    for (let index = 0; index < 4; index += 1) breaker.fault('500')
    breaker.success()
    for (let index = 0; index < 4; index += 1) breaker.fault('500')
    await settle()
    expect(breaker.state).toBe('closed')
    breaker.fault('500')
    await settle()
    expect(breaker.state).toBe('open')
    await vi.advanceTimersByTimeAsync(OPTIONS.resetMs)
    probes[0]?.pass()
    await settle()
    expect(changes).toEqual(['open', 'half-open', 'closed'])
    for (let index = 0; index < 4; index += 1) breaker.fault('500')
    await settle()
    expect(breaker.state).toBe('closed')
  })

  it('stays closed while successes are the greater part', async () => {
    for (let index = 0; index < 20; index += 1) {
      breaker.success()
      breaker.success()
      breaker.fault('reset')
      await settle()
    }
    expect(breaker.state).toBe('closed')
  })

  it('is probed after the reset time even when many failed at once, and closes when the probe passes', async () => {
    await open()
    await vi.advanceTimersByTimeAsync(OPTIONS.resetMs - 1)
    expect(probes).toHaveLength(0)
    await vi.advanceTimersByTimeAsync(1)
    expect(breaker.state).toBe('half-open')
    expect(probes).toHaveLength(1)
    probes[0]?.pass()
    await settle()
    expect(breaker.state).toBe('closed')
    expect(changes).toEqual(['open', 'half-open', 'closed'])
  })

  it('opens again with a new timer each time the probe fails', async () => {
    await open()
    for (let turn = 0; turn < 4; turn += 1) {
      await vi.advanceTimersByTimeAsync(OPTIONS.resetMs)
      expect(probes).toHaveLength(turn + 1)
      probes[turn]?.fail()
      await settle()
      expect(breaker.state).toBe('open')
    }
    await vi.advanceTimersByTimeAsync(OPTIONS.resetMs)
    probes[4]?.pass()
    await settle()
    expect(breaker.state).toBe('closed')
  })

  it('takes no report of client traffic while it is not closed', async () => {
    await open()
    breaker.success()
    await settle()
    expect(breaker.state).toBe('open')
    await vi.advanceTimersByTimeAsync(OPTIONS.resetMs)
    breaker.success()
    breaker.fault('reset')
    await settle()
    expect(breaker.state).toBe('half-open')
    expect(probes).toHaveLength(1)
    probes[0]?.pass()
    await settle()
    expect(breaker.state).toBe('closed')
  })
})
