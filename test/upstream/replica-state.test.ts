/** One state from many signs: each state that a real engine shows, and what must never take a replica out. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { LoadSample } from '../../src/engines/adapter.ts'
import {
  deriveState,
  isMute,
  isSilent,
  type ReplicaSigns,
  STATE_DEFAULTS,
} from '../../src/upstream/replica-state.ts'
import { nextView, restarted, type ScrapeOutcome, type ScrapeView } from '../../src/upstream/scraper.ts'

const NEVER = Number.NEGATIVE_INFINITY
const NOW = 100_000

function sample(over: Partial<LoadSample> = {}): LoadSample {
  return {
    gauges: { runningRequests: 0, waitingRequests: 0 },
    limits: {},
    asleep: false,
    progressTotal: 10,
    ...over,
  }
}
function view(over: Partial<ScrapeView> = {}): ScrapeView {
  const looked = { outcome: 'ok', streak: 5, limits: {}, generation: 0, message: '' } as const
  return { ...looked, sample: sample(), sampleAtMs: NOW, ...over }
}
function signs(over: Partial<ReplicaSigns> = {}): ReplicaSigns {
  return {
    removed: false,
    breaker: 'closed',
    scrape: view(),
    toldDrainingAtMs: NEVER,
    inFlight: 0,
    busySinceMs: NEVER,
    lastBytesAtMs: NEVER,
    lastProbePassedAtMs: NEVER,
    lastRefusedAtMs: NEVER,
    silentSinceMs: NEVER,
    returnedAtMs: NEVER,
    successesSinceReturn: 0,
    ...over,
  }
}
function stateOf(over: Partial<ReplicaSigns>): string {
  return deriveState(signs(over), STATE_DEFAULTS, NOW).state
}

describe('the state of a replica', () => {
  it('is live with nothing against it, also before the first look', () => {
    expect(stateOf({})).toBe('live')
    expect(stateOf({ scrape: { outcome: 'none', streak: 0, limits: {}, generation: 0, message: '' } })).toBe(
      'live',
    )
  })

  it('is never changed by a metrics page that is late, foreign or unreadable', () => {
    const weak = fc.constantFrom<ScrapeOutcome>('none', 'foreign', 'unreadable', 'ok')
    fc.assert(
      fc.property(weak, fc.nat({ max: 1000 }), fc.boolean(), (outcome, streak, seen) => {
        const { sample: last, ...bare } = view({ outcome, streak, sampleAtMs: 0 })
        expect(stateOf({ scrape: seen && last !== undefined ? { ...bare, sample: last } : bare })).toBe(
          'live',
        )
      }),
    )
  })

  it('is draining once removed, or while the engine says that it is shutting down', () => {
    expect(stateOf({ removed: true, breaker: 'open' })).toBe('draining')
    expect(stateOf({ toldDrainingAtMs: NOW - 1 })).toBe('draining')
    expect(stateOf({ toldDrainingAtMs: NOW - 2, lastBytesAtMs: NOW - 1 })).toBe('draining')
    expect(stateOf({ toldDrainingAtMs: NOW - 2, lastProbePassedAtMs: NOW - 1 })).toBe('live')
    expect(stateOf({ toldDrainingAtMs: NOW - 2, returnedAtMs: NOW - 1 })).toBe('ramping')
  })

  it('is down behind an open breaker, and when its port is refused twice in a row', () => {
    expect(stateOf({ breaker: 'open' })).toBe('down')
    expect(stateOf({ breaker: 'half-open' })).toBe('down')
    expect(stateOf({ scrape: view({ outcome: 'refused', streak: 1 }) })).toBe('suspect')
    expect(stateOf({ scrape: view({ outcome: 'refused', streak: 2 }) })).toBe('down')
  })

  it('is suspect after a refused connection until something shows the port open', () => {
    expect(stateOf({ lastRefusedAtMs: NOW, scrape: view({ sampleAtMs: NOW - 1 }) })).toBe('suspect')
    expect(stateOf({ lastRefusedAtMs: NOW - 2, scrape: view({ sampleAtMs: NOW - 1 }) })).toBe('live')
  })

  it('is suspect while asleep', () => {
    expect(stateOf({ scrape: view({ sample: sample({ asleep: true }) }) })).toBe('suspect')
  })

  it('ramps after a return, until time or successes have passed', () => {
    expect(stateOf({ returnedAtMs: NOW - 100 })).toBe('ramping')
    expect(stateOf({ returnedAtMs: NOW - 100, successesSinceReturn: STATE_DEFAULTS.rampSuccesses })).toBe(
      'live',
    )
    expect(stateOf({ returnedAtMs: NOW - STATE_DEFAULTS.rampMs })).toBe('live')
  })
})

describe('silence', () => {
  const busy = { inFlight: 3, busySinceMs: NOW - 60_000 }

  it('with work under way and a standing counter makes suspect', () => {
    expect(stateOf({ ...busy, scrape: view({ progressAtMs: NOW - 10_000 }) })).toBe('suspect')
    expect(stateOf({ ...busy, scrape: view({ progressAtMs: NOW - 9_000 }) })).toBe('live')
  })

  it('is none while the engine works on a long prompt without a byte', () => {
    expect(stateOf({ ...busy, lastBytesAtMs: NOW - 59_000, scrape: view({ progressAtMs: NOW - 100 }) })).toBe(
      'live',
    )
  })

  it('takes longer to be believed when the work can not be seen', () => {
    const blind = view({ outcome: 'foreign' })
    expect(stateOf({ ...busy, busySinceMs: NOW - 29_000, scrape: blind })).toBe('live')
    expect(stateOf({ ...busy, busySinceMs: NOW - 30_000, scrape: blind })).toBe('suspect')
  })

  it('never makes an engine suspect that lately produced a byte, or has nothing to do', () => {
    fc.assert(
      fc.property(fc.nat({ max: 9_999 }), fc.nat({ max: 100 }), (agoMs, inFlight) => {
        expect(stateOf({ ...busy, inFlight, lastBytesAtMs: NOW - agoMs })).toBe('live')
        expect(stateOf({ inFlight: 0 })).toBe('live')
      }),
    )
  })

  it('sticks when its victims have gone, until bytes, progress or a probe prove otherwise', () => {
    const silent = signs({ silentSinceMs: NOW - 5_000, lastBytesAtMs: NOW - 20_000 })
    expect(isSilent(silent, STATE_DEFAULTS, NOW)).toBe(true)
    expect(isSilent({ ...silent, lastProbePassedAtMs: NOW - 1 }, STATE_DEFAULTS, NOW)).toBe(false)
    expect(isSilent({ ...silent, scrape: view({ progressAtMs: NOW - 1 }) }, STATE_DEFAULTS, NOW)).toBe(false)
  })
})

describe('a replica is mute', () => {
  const holding = { inFlight: 3, busySinceMs: NOW - 60_000 }
  const mute = (over: Partial<ReplicaSigns>) => isMute(signs({ ...holding, ...over }), 60_000, NOW)

  it('when nothing has shown life in it for so long, and not while anything does', () => {
    const standing = view({ progressAtMs: NOW - 70_000, answeredAtMs: NOW })
    expect(mute({ scrape: standing })).toBe(true)
    expect(mute({ scrape: standing, busySinceMs: NOW - 59_999 })).toBe(false)
    expect(mute({ scrape: standing, inFlight: 0 })).toBe(false)
    expect(mute({ scrape: standing, lastBytesAtMs: NOW - 59_999 })).toBe(false)
    expect(mute({ scrape: standing, lastProbePassedAtMs: NOW - 59_999 })).toBe(false)
    expect(mute({ scrape: { ...standing, progressAtMs: NOW - 59_999 } })).toBe(false)
  })

  it('only when it answers no look either, while its steps can not be seen', () => {
    const looks = fc.constantFrom<ScrapeOutcome>('none', 'foreign', 'unreadable')
    fc.assert(
      fc.property(looks, fc.integer({ min: 0, max: 120_000 }), (outcome, agoMs) => {
        const { sample: _, ...blind } = view({ outcome, answeredAtMs: NOW - agoMs })
        expect(mute({ scrape: blind })).toBe(agoMs >= 60_000)
      }),
    )
    const { progressTotal: _, ...stepless } = sample()
    expect(mute({ scrape: view({ sample: stepless, answeredAtMs: NOW }) })).toBe(false)
    expect(mute({ scrape: view({ outcome: 'unreadable' }) })).toBe(true)
  })
})

describe('a restart', () => {
  it('shows in another process start or a falling counter, and in nothing else', () => {
    expect(restarted(sample({ processStartSec: 5 }), sample({ processStartSec: 6 }))).toBe(true)
    expect(
      restarted(
        sample({ processStartSec: 5, progressTotal: 9 }),
        sample({ processStartSec: 5, progressTotal: 3 }),
      ),
    ).toBe(false)
    expect(restarted(sample({ progressTotal: 9 }), sample({ progressTotal: 3 }))).toBe(true)
    expect(restarted(sample({ progressTotal: 3 }), sample({ progressTotal: 9 }))).toBe(false)
  })

  it('raises the generation, as does a port that was refused and is open again', () => {
    const refused = nextView(view(), { outcome: 'refused', message: '' }, NOW)
    expect(refused).toMatchObject({ outcome: 'refused', streak: 1, generation: 0 })
    expect(nextView(refused, { outcome: 'ok', sample: sample(), message: '' }, NOW + 1).generation).toBe(1)
    expect(
      nextView(view(), { outcome: 'ok', sample: sample({ progressTotal: 1 }), message: '' }, NOW).generation,
    ).toBe(1)
    expect(
      nextView(view(), { outcome: 'ok', sample: sample({ progressTotal: 11 }), message: '' }, NOW).generation,
    ).toBe(0)
  })

  it('keeps the last page and its age while later looks fail', () => {
    const failed = nextView(view({ sampleAtMs: 5 }), { outcome: 'unreadable', message: 'slow' }, NOW)
    expect(failed).toMatchObject({ outcome: 'unreadable', sampleAtMs: 5, message: 'slow' })
    expect(failed.sample).toEqual(sample())
  })
})
