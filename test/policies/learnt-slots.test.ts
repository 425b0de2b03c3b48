/** Batch slots are learnt from an engine that shows itself full again and again, and from no other. */
import { describe, expect, it } from 'vitest'
import { ReplicaLedger } from '../../src/core/ledger.ts'
import { Learnt } from '../../src/policies/learnt.ts'
import { reportOf } from '../core/core-rig.ts'

/** What is believed after pages with so many running and waiting. */
function slotsAfter(pages: readonly (readonly [running: number, waiting: number])[]): number {
  const learnt = new Learnt({})
  const ledger = new ReplicaLedger(reportOf('r', { limits: {} }))
  pages.forEach(([runningRequests, waitingRequests], index) => {
    ledger.report = reportOf('r', {
      limits: {},
      gauges: { runningRequests, waitingRequests, seenAtMs: index * 500 },
    })
    learnt.readGauges(ledger)
  })
  return learnt.slots(ledger)
}

describe('learnt slots', () => {
  it('are the most that ran, although a stream has just ended on some pages', () => {
    expect(
      slotsAfter([
        [16, 4],
        [15, 6],
        [16, 5],
        [15, 9],
      ]),
    ).toBeCloseTo(16, 0)
  })

  it('are unknown while what waits only waits for the running step', () => {
    expect(
      slotsAfter([
        [3, 1],
        [2, 1],
        [3, 1],
        [2, 2],
        [3, 1],
        [2, 1],
      ]),
    ).toBe(Number.POSITIVE_INFINITY)
  })
})
