/** Replicas behind a DNS name: what has left is found out however long nobody could be asked, and its streams finish. */
import { afterEach, beforeEach, expect, it } from 'vitest'
import { until } from '../support/deadline.ts'
import { ManualClock } from '../support/manual-clock.ts'
import type { ScriptedEngine } from '../support/scripted-engine.ts'
import { config, FleetRig, model, send } from './fleet-rig.ts'

let rig: FleetRig
let clock: ManualClock
let engine: ScriptedEngine
/** What the resolver says; undefined while it can't be reached. */
let addresses: readonly string[] | undefined
let asked: number

beforeEach(async () => {
  rig = new FleetRig()
  clock = new ManualClock()
  engine = await rig.engineWith()
  asked = 0
  addresses = ['127.0.0.1', '127.0.0.2']
  const place = { kind: 'dns', host: 'vllm.svc', port: engine.port, engine: 'vllm' } as const
  rig.start(config({ ...model('m', []), replicas: [place] }), {
    clock,
    resolve: async () => {
      asked += 1
      if (addresses === undefined) throw new Error('SERVFAIL')
      return addresses
    },
  })
  await until(() => rig.fleet.reports().length === 2, 'both addresses')
})
afterEach(() => rig.close())

/** Lets the resolver be asked once more, whether it works or not. */
async function askAgain(): Promise<void> {
  const before = asked
  clock.advance(10_000)
  await until(() => asked > before, 'the resolver to be asked')
  await new Promise((resolve) => setImmediate(resolve))
}
const states = (): Record<string, string> =>
  Object.fromEntries(rig.fleet.reports().map(({ replicaId, state }) => [replicaId, state]))

it('keeps what it knows while the resolver fails, and misses nothing that went meanwhile', async () => {
  addresses = undefined
  for (let turn = 0; turn < 5; turn += 1) await askAgain()
  expect(rig.fleet.reports()).toHaveLength(2)
  expect(rig.notices.filter((notice) => notice.includes("can't be resolved"))).toHaveLength(1)
  // No event tells of the address that went while nobody could be asked.
  addresses = ['127.0.0.1']
  await askAgain()
  await until(() => rig.removed.length > 0, 'the missing address to be removed')
  expect(rig.removed).toEqual(['m-2'])
  expect(rig.notices.filter((notice) => notice.includes('resolves again'))).toHaveLength(1)
})

it('gives nothing new to what has left, and lets its streams finish', async () => {
  const { fault } = send(rig.fleet.replica('m-1'))
  const exchange = await engine.nextRequest()
  exchange.head().token()
  addresses = ['127.0.0.2']
  await askAgain()
  await until(() => states()['m-1'] === 'draining', 'the first to drain')
  clock.advance(30_000)
  expect(exchange.closed).toBe(false)
  exchange.token().done()
  expect(await fault).toBe('end')
  clock.advance(1000)
  await until(() => rig.removed.includes('m-1'), 'the first to be removed')
})
