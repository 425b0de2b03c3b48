/** The advice on speculative decoding beside the simulator: where it says that guessing pays, goodput rises, and falls where not. */
import { describe, expect, it } from 'vitest'
import { priorLike } from '../../src/cli/gate-parts.ts'
import { adviseOn, USUAL_SPECULATION } from '../../src/estimate/engine-advice.ts'
import { stepModel } from '../../src/estimate/step-model.ts'
import { createRoundRobin } from '../../src/policies/plain/round-robin.ts'
import { createSluice } from '../../src/policies/sluice.ts'
import { type EngineProfile, profile } from '../../src/sim/profiles.ts'
import { summarize } from '../../src/sim/report.ts'
import { simulate } from '../../src/sim/run.ts'
import type { WorkloadRequest } from '../../src/sim/workload-types.ts'
import { sloOf } from '../slo/facts.ts'

/** An engine whose steps are cheap until they check many tokens. */
const PROFILE: EngineProfile = {
  ...profile('demo/slow'),
  prefill: { floorMs: 20, baseMs: 20, perTokenMs: 0.5, perTokenContextMs: 0 },
  decode: { baseMs: 20, perSequenceMs: 0.1, perContextTokenMs: 0 },
  kvCapacityTokens: 100_000,
  defaults: { maxNumSeqs: 64, maxNumBatchedTokens: 512 },
}
const DURATION_MS = 8000
const OUTPUT_TOKENS = 100

function requestsAt(perSec: number): readonly WorkloadRequest[] {
  return Array.from({ length: (perSec * DURATION_MS) / 1000 }, (_, index) => ({
    id: `r${index}`,
    atMs: (index * 1000) / perSec,
    className: 'chat',
    promptTokens: 4,
    outputTokens: OUTPUT_TOKENS,
    maxTokens: OUTPUT_TOKENS,
  }))
}

interface Load {
  readonly perSec: number
  readonly tpotMs: number
}
const LOW: Load = { perSec: 1, tpotMs: 15 }
const HIGH: Load = { perSec: 20, tpotMs: 40 }

/** The load is told apart by a pace that one of the two ways keeps and the other does not. */
function runAt({ perSec, tpotMs }: Load, guessing: boolean, createScheduler: typeof createRoundRobin) {
  const speculative = guessing ? { speculative: USUAL_SPECULATION } : {}
  const result = simulate({
    replicas: [{ engine: { profile: PROFILE, ...speculative } }],
    requests: requestsAt(perSec),
    createScheduler,
    classes: { chat: sloOf({ ttftMs: 10_000, tpotMs, maxWaitMs: 10_000 }) },
    drainMs: 20_000,
  })
  const { goodPerSec } = summarize(result, 0, DURATION_MS)
  const servedMs = result.outcomes.reduce(
    (sum, { settlement }) => sum + settlement.e2eMs - settlement.queueMs,
    0,
  )
  // Little's law: how many were running on the mean.
  return { goodPerSec, batch: servedMs / result.endedAtMs }
}

describe('speculative decoding', () => {
  const { speculationCostsFrom: from } = adviseOn(stepModel(priorLike(PROFILE)), [], {
    budgetTokens: 512,
    sequences: 64,
    contextTokens: OUTPUT_TOKENS / 2,
    slots: 64,
    kvCapacityTokens: PROFILE.kvCapacityTokens,
  })

  it.each([
    ['the bare engine', createRoundRobin],
    ['Sluice', createSluice],
  ])('raises and lowers the goodput of %s where the advice says so', (_, createScheduler) => {
    const [plain, guessing] = [false, true].map((with_) => runAt(LOW, with_, createScheduler))
    expect(plain?.batch).toBeLessThan(from / 2)
    expect(guessing?.goodPerSec).toBeGreaterThan(plain?.goodPerSec ?? Number.NaN)
    const [fullPlain, fullGuessing] = [false, true].map((with_) => runAt(HIGH, with_, createScheduler))
    expect(fullPlain?.batch).toBeGreaterThan(1.5 * from)
    expect(fullGuessing?.goodPerSec).toBeLessThan(fullPlain?.goodPerSec ?? Number.NaN)
  })
})
