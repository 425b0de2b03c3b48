/** Overload in the simulator: a flood harms neither another tenant nor a whole class, and costs are small. */
import { describe, expect, it } from 'vitest'
import type { SloClass } from '../../../src/core/request.ts'
import type { SluicePart } from '../../../src/policies/parts.ts'
import { createSluice } from '../../../src/policies/sluice.ts'
import { profile } from '../../../src/sim/profiles.ts'
import { simulate } from '../../../src/sim/run.ts'
import type { SimResult } from '../../../src/sim/run-types.ts'
import type { WorkloadRequest } from '../../../src/sim/workload-types.ts'
import { sloOf } from '../../slo/facts.ts'

const SPAN_MS = 24_000
/** Learning from nothing is not what is looked at. */
const WARM_MS = 8000
const classes: Readonly<Record<string, SloClass>> = {
  chat: sloOf({ name: 'chat', ttftMs: 1500, tpotMs: 200, maxWaitMs: 10_000 }),
  document: sloOf({ name: 'document', ttftMs: 3000, tpotMs: 200, maxWaitMs: 10_000 }),
  batch: sloOf({ name: 'batch', overload: 'wait', maxWaitMs: 600_000 }),
}

interface Stream {
  readonly tenant: string
  readonly className: string
  readonly everyMs: number
  readonly promptTokens: number
}

function run(streams: readonly Stream[], without: readonly SluicePart[] = []): SimResult {
  const requests = streams.flatMap(({ everyMs, ...stream }) =>
    Array.from(
      { length: Math.floor(SPAN_MS / everyMs) },
      (_, index): WorkloadRequest => ({
        ...stream,
        id: `${stream.tenant} ${stream.className} ${index}`,
        atMs: index * everyMs,
        outputTokens: 20,
        maxTokens: 20,
      }),
    ),
  )
  return simulate({
    replicas: [{ engine: { profile: profile('demo/slow') } }],
    requests: requests.toSorted((a, b) => a.atMs - b.atMs),
    createScheduler: () => createSluice({ without }),
    classes,
    closesAtMs: SPAN_MS,
    drainMs: 5000,
  })
}

interface Count {
  offered: number
  good: number
  /** Sent to a replica while others still came. */
  served: number
}

/** What became of a tenant's or a class's requests, once something has been learnt. */
function countOf({ outcomes }: SimResult, name: string, fromMs = 0): Count {
  const count: Count = { offered: 0, good: 0, served: 0 }
  for (const { settlement } of outcomes) {
    const { offer, verdict, attempts, queueMs } = settlement
    if ((offer.tenant !== name && offer.slo.name !== name) || offer.receivedAtMs < fromMs) continue
    count.offered++
    if (verdict.kind === 'good') count.good++
    if (attempts > 0 && offer.receivedAtMs + queueMs < SPAN_MS) count.served++
  }
  return count
}

const FLOOD: Stream = { tenant: 'flood', className: 'chat', everyMs: 50, promptTokens: 200 }
const MODEST: Stream = { tenant: 'modest', className: 'document', everyMs: 1000, promptTokens: 500 }

describe('a tenant that floods', () => {
  it('I32 leaves one within its share as well off as if it were alone', () => {
    const alone = countOf(run([MODEST]), 'modest', WARM_MS)
    const beside = countOf(run([FLOOD, MODEST]), 'modest', WARM_MS)
    const unfair = countOf(run([FLOOD, MODEST], ['shares', 'floors']), 'modest', WARM_MS)
    expect(alone.good).toBe(alone.offered)
    expect(beside.good).toBeGreaterThanOrEqual(alone.good - 1)
    // Without shares it is starved: this is what they are for.
    expect(unfair.good).toBe(0)
  })
})

describe('a flood of cheap requests', () => {
  const streams = [
    FLOOD,
    { ...MODEST, tenant: 'flood', everyMs: 500 },
    { ...MODEST, tenant: 'flood', everyMs: 500, className: 'batch' },
  ]

  it('I33 leaves each class its floor, which costs the flood little', () => {
    const bare = run(streams, ['floors'])
    const floored = run(streams)
    for (const name of ['document', 'batch']) {
      expect(countOf(bare, name).served).toBeLessThanOrEqual(1)
      const { served, offered } = countOf(floored, name)
      expect(served).toBeGreaterThanOrEqual(offered / 20 - 1)
    }
    expect(countOf(floored, 'chat').good).toBeGreaterThan(0.9 * countOf(bare, 'chat').good)
  })
})

describe('work within capacity', () => {
  it('I32 is decided the same with and without shares and floors', () => {
    const streams = [{ ...FLOOD, everyMs: 400 }, MODEST, { ...MODEST, className: 'batch', everyMs: 4000 }]
    expect(run(streams)).toEqual(run(streams, ['shares', 'floors']))
  })
})
