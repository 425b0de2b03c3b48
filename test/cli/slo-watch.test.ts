import { describe, expect, it } from 'vitest'
import { SLO_WATCH_MS, watchSloHealth } from '../../src/cli/slo-watch.ts'
import { ManualClock } from '../support/manual-clock.ts'
import { rig, shed } from '../telemetry/rig.ts'

describe('the watch over SLO health', () => {
  it('tells of a change of state though nobody scrapes, and leaves no timer', () => {
    const { observer, lines } = rig()
    const clock = new ManualClock()
    const stop = watchSloHealth(observer, clock)
    for (let index = 0; index < 50; index++) observer.onSettled(shed())
    clock.advance(SLO_WATCH_MS - 1)
    expect(lines('slo_state')).toHaveLength(0)
    clock.advance(1)
    expect(lines('slo_state')).toMatchObject([{ class: 'chat', from: 'unknown', to: 'critical' }])
    stop()
    stop()
    expect(clock.pending).toBe(0)
  })

  it('goes on after a fault of ours, which is told', () => {
    const clock = new ManualClock()
    const faults: unknown[] = []
    const health = () => {
      throw new Error('broken')
    }
    watchSloHealth({ health, reweigh: () => {}, onFault: (error) => faults.push(error) }, clock)
    clock.advance(2 * SLO_WATCH_MS)
    expect(faults).toHaveLength(2)
  })
})
