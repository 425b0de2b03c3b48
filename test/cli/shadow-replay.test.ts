/** The estimate of a shadow: what it simulates, when it keeps silent, and that it holds no more than it says. */
import { describe, expect, it } from 'vitest'
import { replayShadow } from '../../src/cli/replay-run.ts'
import { ESTIMATE_EVERY_MS, type ShadowJob, ShadowReplay } from '../../src/cli/shadow-replay.ts'
import type { Config } from '../../src/config/config.ts'
import type { Settlement } from '../../src/core/records.ts'
import { createRoundRobin } from '../../src/policies/plain/round-robin.ts'
import { profile } from '../../src/sim/profiles.ts'
import { steadyRate } from '../../src/sim/rates.ts'
import { simulate } from '../../src/sim/run.ts'
import { generateWorkload } from '../../src/sim/workload.ts'
import type { ShadowEstimate } from '../../src/telemetry/shadow-estimate.ts'
import { setUp } from '../admin/admin-rig.ts'
import { loaded } from '../config/files.ts'
import { within } from '../support/deadline.ts'
import { ManualClock } from '../support/manual-clock.ts'

function settlements(perSec: number): readonly Settlement[] {
  const found: Settlement[] = []
  simulate({
    replicas: [0, 1].map(() => ({ engine: { profile: profile('demo/slow'), jitterRatio: 0.05 } })),
    requests: generateWorkload({ seed: 5, lengthRatio: 0.25, segments: steadyRate(perSec, 40_000) }),
    createScheduler: createRoundRobin,
    onOutcome: ({ settlement }) => void found.push(settlement),
  })
  return found
}

const FILE = `mode: shadow
auth: none
models:
  - name: model
    engine_args: { max_num_seqs: 16, max_num_batched_tokens: 512, kv_capacity_tokens: 24576 }
    replicas: [http://10.0.0.1:8000, http://10.0.0.2:8000]
`

function rig(run: (job: ShadowJob) => Promise<ReturnType<typeof replayShadow>>) {
  const told: (ShadowEstimate | undefined)[] = []
  const faults: unknown[] = []
  const jobs: ShadowJob[] = []
  const at: { config: Config; nowMs: number } = { config: loaded(FILE), nowMs: 60_000 }
  const shadow = new ShadowReplay({
    config: () => at.config,
    nowMs: () => at.nowMs,
    run: (job) => {
      jobs.push(job)
      return run(job)
    },
    onEstimate: (estimate) => told.push(estimate),
    onFault: (error) => faults.push(error),
  })
  return { shadow, at, told, faults, jobs }
}

const overloaded = settlements(13)

describe('the estimate of a shadow', { timeout: 60_000 }, () => {
  it('says that enforcing would keep more, and comes close to what was measured where it checks itself', async () => {
    const { shadow, told } = rig(async (job) => replayShadow(structuredClone(job)))
    for (const settlement of overloaded) shadow.note(settlement)
    await shadow.look()
    const chat = told.at(-1)?.classes.find((each) => each.class === 'chat')
    expect(chat?.requests).toBeGreaterThan(100)
    expect(Math.abs((chat?.shadowRatio ?? 0) - (chat?.measuredRatio ?? 1))).toBeLessThan(0.12)
    expect(chat?.enforcedRatio).toBeGreaterThan((chat?.measuredRatio ?? 1) + 0.2)
  })

  it('keeps silent about few requests, old ones, and outside shadow mode', async () => {
    const { shadow, at, told, jobs } = rig(async (job) => replayShadow(job))
    for (const settlement of overloaded.slice(0, 50)) shadow.note(settlement)
    await shadow.look()
    for (const settlement of overloaded) shadow.note(settlement)
    at.nowMs = 3_600_000
    await shadow.look()
    at.nowMs = 60_000
    at.config = { ...at.config, mode: 'enforce' }
    await shadow.look()
    expect(told).toEqual([undefined, undefined, undefined])
    expect(jobs).toEqual([])
    const [one] = overloaded
    if (one !== undefined) shadow.note(one)
    at.config = { ...at.config, mode: 'shadow' }
    await shadow.look()
    expect(jobs).toEqual([])
  })

  it('looks once a minute, one look at a time, and outlives a fault', async () => {
    let fail: (error: Error) => void = () => {}
    const { shadow, faults, jobs, told } = rig(
      () =>
        new Promise((_resolve, reject) => {
          fail = reject
        }),
    )
    for (const settlement of overloaded) shadow.note(settlement)
    const clock = new ManualClock()
    const stop = shadow.watch(clock)
    clock.advance(3 * ESTIMATE_EVERY_MS)
    expect(jobs).toHaveLength(1)
    fail(new Error('broken'))
    await new Promise((resolve) => setImmediate(resolve))
    expect(faults).toHaveLength(1)
    expect(told).toEqual([undefined])
    clock.advance(ESTIMATE_EVERY_MS)
    expect(jobs).toHaveLength(2)
    stop()
    expect(clock.pending).toBe(0)
  })

  it('holds no more than its last thousands of requests', async () => {
    const { shadow, jobs } = rig(async () => undefined)
    for (let round = 0; round < 30; round++) for (const settlement of overloaded) shadow.note(settlement)
    await shadow.look()
    expect(jobs[0]?.requests.length).toBe(5000)
  })

  it('is made by the built program in a thread of its own, the same as in this one', async () => {
    const built = (await import(new URL('../../dist/cli/shadow-replay.js', import.meta.url).href)) as {
      replayInThread: (job: ShadowJob) => Promise<ReturnType<typeof replayShadow>>
    }
    const { shadow, jobs } = rig(async () => undefined)
    for (const settlement of overloaded) shadow.note(settlement)
    await shadow.look()
    const [job] = jobs
    if (job === undefined) throw new Error('no job')
    expect(await within(built.replayInThread(job), 'the thread', 40_000)).toEqual(replayShadow(job))
  })

  it('is told as an estimate by /slo and /metrics, and goes when nobody can say', async () => {
    const { observer, json, get } = setUp()
    expect(await json('/slo')).toMatchObject({ if_enforced: null })
    const one = {
      model: 'm',
      class: 'chat',
      requests: 200,
      measuredRatio: 0.4,
      shadowRatio: 0.42,
      enforcedRatio: 0.9,
    }
    observer.onEstimate({ atMs: 0, spanMs: 60_000, classes: [one] })
    expect(await json('/slo')).toMatchObject({
      if_enforced: {
        kind: 'estimate',
        classes: [
          { class: 'chat', measured_ratio: 0.4, simulated_as_run_ratio: 0.42, simulated_enforced_ratio: 0.9 },
        ],
      },
    })
    const page = async () => await (await get('/metrics')).text()
    expect(await page()).toContain('sluice_shadow_estimate_ratio{model="m",class="chat",mode="enforce"} 0.9')
    observer.onEstimate(undefined)
    expect(await page()).not.toContain('sluice_shadow_estimate_ratio{')
  })
})
