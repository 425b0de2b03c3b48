/** The replicas of a worker: what runs there outlives the decider that has named them. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { OpenRequest, UpstreamFault } from '../../src/upstream/ports.ts'
import type { FromWorker, ReplicaNews } from '../../src/workers/wire.ts'
import { WorkerFleet } from '../../src/workers/worker-fleet.ts'
import { deferred, within } from '../support/deadline.ts'
import { type ScriptedEngine, scriptedEngine } from '../support/scripted-engine.ts'

const REQUEST: OpenRequest = {
  method: 'POST',
  path: '/v1/chat/completions',
  headers: { 'content-type': 'application/json' },
  body: [Buffer.from('{}')],
  firstByteTimeoutMs: 10_000,
  betweenBytesTimeoutMs: 10_000,
}

let engines: ScriptedEngine[]
let fleet: WorkerFleet
let removed: string[]
let sent: FromWorker[]
beforeEach(async () => {
  engines = [await scriptedEngine(), await scriptedEngine()]
  removed = []
  sent = []
  fleet = new WorkerFleet({
    connectTimeoutMs: () => 1000,
    send: (message) => void sent.push(message),
    onReport: () => {},
    onRemoved: (replicaId) => void removed.push(replicaId),
  })
})
afterEach(async () => {
  await fleet.close()
  for (const engine of engines) await engine.close()
})

const engine = (at: number): ScriptedEngine => engines[at] as ScriptedEngine

function news(replicaId: string, at: number): ReplicaNews {
  const limits = {}
  const report = { replicaId, pools: ['m'], groupId: 'g', state: 'live', limits, generation: 0 } as const
  return { report, url: engine(at).url, engine: 'vllm' }
}

/** Opens a stream on that replica, up to its head. */
async function open(replicaId: string, at: number) {
  const end = deferred<UpstreamFault | 'end'>()
  const replica = fleet.replica(replicaId)
  replica?.open(REQUEST, {
    onHeaders: () => {},
    onBytes: () => {},
    onEnd: () => end.resolve('end'),
    onFault: (fault) => end.resolve(fault),
  })
  const exchange = await engine(at).nextRequest()
  exchange.head().token('one')
  return { replica, exchange, end: () => within(end.promise, 'the end of the stream') }
}

describe('the replicas of a worker', () => {
  it('keep what runs on them when a new decider has not found them yet, and are closed when it is over', async () => {
    fleet.welcome([news('m-1', 0)])
    const { exchange, end } = await open('m-1', 0)
    fleet.welcome([])
    expect([fleet.replica('m-1'), removed]).toEqual([undefined, ['m-1']])
    fleet.signs()
    exchange.token('two').done()
    expect(await end()).toBe('end')
    fleet.signs()
    await exchange.waitClosed()
  })

  it('keep their sockets under the names that a new decider gives them, and blame nobody by an old one', async () => {
    fleet.welcome([news('m-1', 0), news('m-2', 1)])
    const { replica, exchange, end } = await open('m-2', 1)
    fleet.welcome([news('m-1', 1)])
    replica?.reportSuccess()
    expect(sent).toEqual([])
    exchange.done()
    expect(await end()).toBe('end')
    fleet.replica('m-1')?.reportSuccess()
    expect(sent).toEqual([{ kind: 'replicaWorked', replicaId: 'm-1', ended: true }])
    const again = await open('m-1', 1)
    again.exchange.done()
    expect(await again.end()).toBe('end')
    expect(engine(1).connections).toBe(1)
  })

  it('end what runs on one that the decider takes away for good', async () => {
    fleet.welcome([news('m-1', 0)])
    const { end } = await open('m-1', 0)
    fleet.remove('m-1')
    expect(await end()).toMatchObject({ cause: 'aborted' })
  })
})
