/** How far predictions are believed is there for everybody to see, in each of its states. */
import { expect, it } from 'vitest'
import type { LearntState } from '../../src/admin/learnt-json.ts'
import type { TrustState } from '../../src/core/scheduler.ts'
import { createSluice } from '../../src/policies/sluice.ts'
import { reportOf } from '../core/core-rig.ts'
import { GateWorld } from '../property/gate-world.ts'
import { offerOf, sloOf } from '../slo/facts.ts'
import { samplesOf } from '../telemetry/rig.ts'
import { setUp } from './admin-rig.ts'

const STATES: readonly TrustState[] = ['trusted', 'cautious', 'fallback']

it('trust is told by metrics, /replicas, /overview and the console, while it is earned and when it is lost', async () => {
  const scheduler = createSluice()
  const world = new GateWorld(scheduler)
  world.tell({ kind: 'replicaChanged', replica: reportOf('r1') })
  const { parts, get, json } = setUp({ predictor: () => scheduler.snapshot() as LearntState })
  const told: TrustState[] = []

  const tell = async (): Promise<void> => {
    const state = scheduler.trust('m')
    if (told.at(-1) === state) return
    told.push(state)
    parts.trust = [{ model: 'm', state }]
    const samples = samplesOf(await (await get('/metrics')).text())
    const shown = STATES.map((one) => samples.get(`sluice_predictor_trust{model="m",state="${one}"}`))
    expect(shown, state).toEqual(STATES.map((one) => (one === state ? 1 : 0)))
    const replicas = await json('/replicas')
    expect(replicas).toMatchObject({ trust: [{ model: 'm', state }] })
    if (world.stories.size > 0) expect(replicas).toMatchObject({ predictor: { groups: [{ trust: state }] } })
    expect(await json('/overview')).toMatchObject({ replicas: [{ name: 'r1', trust: state }] })
    expect(await (await get('/')).text()).toContain(state === 'fallback' ? 'not yet' : state)
  }
  const serve = (requestId: string, slowness: number): void => {
    const slo = sloOf({ ttftMs: 600_000, maxWaitMs: 600_000 })
    const promptTokens = 100 + 150 * (world.stories.size % 12)
    world.tell({ kind: 'offer', offer: offerOf(slo, { requestId, receivedAtMs: world.nowMs, promptTokens }) })
    for (const permit of [...world.permits.values()]) {
      world.pass(slowness * (30 + 0.2 * promptTokens))
      world.firstToken(permit)
      world.pass(slowness * 160)
      world.progress([permit], 8)
      world.settle(permit, 'completed')
    }
  }

  await tell()
  for (let i = 0; i < 80; i++) {
    serve(`steady${i}`, 1)
    await tell()
  }
  expect(told).toEqual(['fallback', 'cautious', 'trusted'])
  for (let i = 0; i < 40; i++) {
    serve(`slow${i}`, 8)
    await tell()
  }
  expect(told.slice(3)).toContain('fallback')
})
