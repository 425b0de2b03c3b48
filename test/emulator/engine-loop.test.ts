/** The real-time driver: one timer, honest about lateness, still while paused. */
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { EngineLoop } from '../../src/emulator/engine-loop.ts'
import { EngineModel } from '../../src/sim/engine-model.ts'
import { profile } from '../../src/sim/profiles.ts'

let nowMs = 0

beforeEach(() => {
  nowMs = 0
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
})
afterEach(() => {
  expect(vi.getTimerCount()).toBe(0)
  vi.useRealTimers()
})

/** Moves clock and timers together. */
function pass(ms: number): void {
  for (let at = 0; at < ms; at++) {
    nowMs++
    vi.advanceTimersByTime(1)
  }
}

function setUp(speedRatio = 1) {
  const tokens: number[] = []
  const model = new EngineModel({ profile: profile('demo/slow') })
  const loop = new EngineLoop(
    model,
    () => nowMs,
    speedRatio,
    () => {},
  )
  const listener = { onToken: () => void tokens.push(nowMs) }
  const submit = (outputTokens: number) =>
    loop.submit({ id: `r${nowMs}`, promptTokens: 100, outputTokens: [outputTokens] }, listener)
  return { loop, model, tokens, submit }
}

describe('engine loop', () => {
  it('brings tokens when the model says', () => {
    const { tokens, submit } = setUp()
    submit(3)
    pass(200)
    // 5 ms overhead, 45.5 ms prefill, then steps of about 26 ms; timers fire up to 1 ms late.
    expect(tokens).toEqual([51, 77, 103])
  })

  it('runs faster when told', () => {
    const { tokens, submit } = setUp(10)
    submit(3)
    pass(20)
    expect(tokens).toEqual([6, 8, 11])
  })

  it('holds the model back instead of sending several steps at once when it was late', () => {
    const { loop, tokens, submit } = setUp()
    submit(5)
    pass(60)
    nowMs += 1000
    pass(200)
    const gaps = tokens.slice(1).map((atMs, at) => atMs - (tokens[at] ?? 0))
    expect(tokens).toHaveLength(5)
    expect(gaps[0]).toBeGreaterThan(1000)
    expect(gaps.slice(1).every((gap) => gap >= 25 && gap <= 28)).toBe(true)
    expect(loop.lag.stalledMs).toBeGreaterThan(950)
    expect(loop.lag.maxMs).toBeGreaterThan(950)
  })

  it('catches small lateness up', () => {
    const { loop, tokens, submit } = setUp()
    submit(10)
    pass(60)
    nowMs += 10
    pass(300)
    expect(loop.lag.stalledMs).toBe(0)
    expect((tokens.at(-1) ?? 0) - (tokens[0] ?? 0)).toBeLessThanOrEqual(9 * 26.1 + 2)
  })

  it('stands still while paused and goes on afterwards', () => {
    const { loop, tokens, submit } = setUp()
    submit(3)
    pass(60)
    loop.pause()
    pass(500)
    expect(tokens).toHaveLength(1)
    loop.resume()
    pass(100)
    expect(tokens).toEqual([51, 577, 603])
  })

  it('forgets an aborted request and leaves no timer', () => {
    const { loop, model, tokens, submit } = setUp()
    submit(50)
    pass(60)
    loop.abort('r0')
    pass(100)
    expect(tokens).toHaveLength(1)
    expect(model.inFlightSequences).toBe(0)
    submit(50)
    loop.stop()
    pass(100)
    expect(tokens).toHaveLength(1)
  })
})
