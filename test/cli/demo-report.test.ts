/** The demo's own parts without its processes: file, phases, sums and pictures. */
import { describe, expect, it } from 'vitest'
import { rampsOf } from '../../src/cli/demo.ts'
import { demoConfig } from '../../src/cli/demo-fleets.ts'
import { lastedPhases, reportDemo } from '../../src/cli/demo-report.ts'
import { DEMO_CLASSES, DEMO_PROFILE, demoCapacity, demoPhases } from '../../src/cli/demo-scenario.ts'
import { liveLine, liveText, summaryText } from '../../src/cli/demo-screen.ts'
import { loadConfig } from '../../src/config/load.ts'
import type { SloVerdict } from '../../src/core/records.ts'
import type { LoadResult } from '../../src/load/outcome.ts'
import { createTally } from '../../src/load/tally.ts'
import { profile } from '../../src/sim/profiles.ts'

const phases = demoPhases(10, 50_000)

/** A tally in which that many requests of each phase were good and bad. */
function tallyOf(counts: Readonly<Record<string, readonly [good: number, bad: number]>>) {
  const tally = createTally()
  for (const [phase, [good, bad]] of Object.entries(counts)) {
    for (let index = 0; index < good + bad; index++) {
      const slo = DEMO_CLASSES.chat
      if (slo === undefined) throw new RangeError('no chat class')
      const planned = { id: 'r', atMs: 0, phase, slo, promptTokens: 1, maxTokens: 1, outputTokens: 1 }
      const verdict: SloVerdict = { kind: index < good ? 'good' : 'bad' }
      tally.offered(planned)
      tally.settled({
        planned,
        verdict,
        retries: 0,
        endedAtMs: 0,
        facts: { outcome: 'completed', outputTokens: 1 },
      } as LoadResult)
    }
  }
  return tally
}

const report = (bare: Parameters<typeof tallyOf>[0], sluice: Parameters<typeof tallyOf>[0]) =>
  reportDemo({
    seed: 1,
    capacityPerSec: 10,
    saturatedPerSec: 12,
    phases,
    tallies: { bare: tallyOf(bare), sluice: tallyOf(sluice) },
    loopLagP99Ms: 1,
  })

describe('the demo', () => {
  it('writes a file for Sluice that is valid and holds the promises that the load is judged by', () => {
    const loaded = loadConfig(demoConfig(8080, 9090, ['http://127.0.0.1:1']), { fileName: 'demo', env: {} })
    if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems))
    for (const [name, slo] of Object.entries(DEMO_CLASSES)) {
      expect(loaded.config.classes[name]).toEqual(
        slo.overload === 'shed' ? { ...slo, maxWaitMs: expect.any(Number) } : slo,
      )
    }
  })

  it('makes at most 2000 tokens/s with all engines full', () => {
    const { decode, stepOverheadMs, defaults } = profile(DEMO_PROFILE)
    const stepMs = decode.baseMs + decode.perSequenceMs * defaults.maxNumSeqs + stepOverheadMs
    expect((4 * defaults.maxNumSeqs * 1000) / stepMs).toBeLessThanOrEqual(2000)
  })

  it('knows its capacity, below what the fleet completes when saturated', () => {
    const { ratePerSec, saturatedPerSec } = demoCapacity()
    expect(ratePerSec).toBeGreaterThan(5)
    expect(ratePerSec).toBeLessThan(saturatedPerSec)
  })

  it('fits ramps into the wanted time', () => {
    expect(rampsOf(undefined)).toEqual({ ramps: Number.POSITIVE_INFINITY, rampMs: 120_000 })
    expect(rampsOf(5000)).toEqual({ ramps: 1, rampMs: 5000 })
    expect(rampsOf(300_000)).toEqual({ ramps: 3, rampMs: 100_000 })
  })

  it('counts whole ramps and the part of a broken one', () => {
    expect(lastedPhases(phases, 1, 15_000).map(({ durationMs }) => durationMs)).toEqual([
      20_000, 15_000, 10_000, 10_000, 10_000,
    ])
  })

  it('compares goodput at 2x with goodput at 1x', () => {
    const { retainedRatio } = report({ '1x': [90, 10], '2x': [9, 190] }, { '1x': [90, 10], '2x': [108, 92] })
    expect(retainedRatio).toEqual({ bare: 0.1, sluice: expect.closeTo(1.2) })
    expect(report({ '1x': [1, 0] }, {}).retainedRatio).toEqual({ bare: 0 })
  })

  it('says in the summary what each fleet keeps, and whether the run is valid', () => {
    const text = summaryText(
      report({ '1x': [90, 10], '2x': [9, 190] }, { '1x': [90, 10], '2x': [108, 92] }),
      false,
    )
    expect(text).toContain(
      'At 2x Sluice keeps 120 % of its goodput at 1x (target 80.0 %); the bare fleet keeps 10.0 %.',
    )
    expect(text).toContain('valid')
    expect(summaryText({ ...report({}, {}), valid: false, loopLagP99Ms: 9 }, false)).toContain(
      'NOT VALID: client loop lag p99 9.0 ms',
    )
  })

  it('shows both fleets live, in a picture and in a line', () => {
    const fleet = { recent: tallyOf({ '1x': [5, 5] }).summary(), recentClasses: {}, openRequests: 3 }
    const now = {
      ramp: 1,
      phase: '2x',
      offeredPerSec: 20,
      elapsedMs: 61_000,
      rampMs: 120_000,
      fleets: { bare: fleet, sluice: fleet },
      report: report({ '1x': [90, 10] }, { '1x': [90, 10] }),
    }
    const text = liveText(now, 'header', false)
    expect(text).toContain('ramp 1 · 2x · 20.00/s to each fleet (1x = 10/s) · 1:01 of 2:00')
    for (const name of Object.keys(DEMO_CLASSES)) expect(text).toContain(name)
    expect(Math.max(...text.split('\n').map((line) => line.length))).toBeLessThanOrEqual(100)
    expect(liveLine(now)).toContain('61 s 2x (20.00/s) | bare: good 1.00/s (50.0 %)')
  })
})
