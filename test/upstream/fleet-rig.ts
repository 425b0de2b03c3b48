/** A fleet on real sockets before scripted engines, with short spans, and all that it tells its owner. */
import type { ReplicaReport } from '../../src/core/replica.ts'
import type { EngineKind } from '../../src/engines/adapter.ts'
import { type Clock, systemClock } from '../../src/upstream/clock.ts'
import { createFleet, type FleetConfig, type ManagedFleet } from '../../src/upstream/fleet.ts'
import type { ModelSource } from '../../src/upstream/members.ts'
import type { Replica, UpstreamFault } from '../../src/upstream/ports.ts'
import type { ReplicaTuning } from '../../src/upstream/replica.ts'
import { deferred, until, within } from '../support/deadline.ts'
import { type ScriptedEngine, scriptedEngine, vllmPage } from '../support/scripted-engine.ts'

/** Short, so that the real timers that sockets need don't slow the tests. */
const TUNING: ReplicaTuning = {
  scrapePeriodMs: 10,
  probePeriodMs: 20,
  probeDeadlineMs: 300,
  stoppedSilenceMs: 200,
  breaker: { faultRatio: 0.5, minExchanges: 3, windowMs: 10_000, resetMs: 50 },
  state: { silentMs: 100, silentBlindMs: 200, rampMs: 60_000, rampSuccesses: 2 },
}

export interface FleetRigOptions {
  readonly resolve?: (host: string) => Promise<readonly string[]>
  readonly tuning?: ReplicaTuning
  readonly clock?: Clock
}

export class FleetRig {
  readonly reports: ReplicaReport[] = []
  readonly removed: string[] = []
  readonly notices: string[] = []
  readonly #engines: ScriptedEngine[] = []
  #fleet: ManagedFleet | undefined

  get fleet(): ManagedFleet {
    if (this.#fleet === undefined) throw new Error('the fleet is not started')
    return this.#fleet
  }

  /** An engine with a metrics page; null for one without. */
  async engineWith(page: string | null = vllmPage()): Promise<ScriptedEngine> {
    const engine = await scriptedEngine(page === null ? {} : { metrics: page })
    this.#engines.push(engine)
    return engine
  }

  start(config: FleetConfig, options: FleetRigOptions = {}): ManagedFleet {
    const { resolve, tuning = {}, clock = systemClock } = options
    this.#fleet = createFleet({
      config,
      clock,
      tuning: { ...TUNING, ...tuning },
      onReport: (report) => this.reports.push(report),
      onRemoved: (id) => this.removed.push(id),
      onNotice: (_level, message) => this.notices.push(message),
      ...(resolve === undefined ? {} : { resolve }),
    })
    return this.#fleet
  }

  reportOf(id: string): ReplicaReport | undefined {
    return this.#fleet?.reports().find((report) => report.replicaId === id)
  }

  async untilState(id: string, state: ReplicaReport['state']): Promise<void> {
    await until(() => this.reportOf(id)?.state === state, `${id} is ${state}`).catch((error: Error) => {
      throw new Error(`${error.message}: it is ${this.reportOf(id)?.state}`)
    })
  }

  async untilScraped(id: string): Promise<void> {
    await until(() => this.reportOf(id)?.gauges !== undefined, `${id} has been scraped`)
  }

  /** Closes the fleet, and proves that it has no socket left. */
  async close(): Promise<void> {
    await this.#fleet?.close()
    const left = this.#fleet?.openSockets() ?? 0
    for (const engine of this.#engines) {
      await until(() => engine.sockets === 0, 'the fleet has closed its sockets')
      await engine.close()
    }
    if (left > 0) throw new Error(`${left} sockets are left`)
  }
}

export function model(name: string, urls: readonly string[], over: Partial<ModelSource> = {}): ModelSource {
  return modelOf('vllm', name, urls, over)
}

export function modelOf(
  engine: EngineKind,
  name: string,
  urls: readonly string[],
  over: Partial<ModelSource> = {},
): ModelSource {
  const replicas = urls.map((url) => ({ kind: 'url', url, engine }) as const)
  return { name, servedName: 'tiny', engineArgs: {}, replicas, ...over }
}

export function config(...models: readonly ModelSource[]): FleetConfig {
  const limits = { firstByteMs: 60_000, betweenBytesMs: 60_000 }
  return { models, timeouts: { connectMs: 500, drainMs: 60_000, ...limits } }
}

/** Sends a request and tells how its exchange ends. */
export function send(replica: Replica | undefined): {
  readonly fault: Promise<UpstreamFault | 'end'>
  readonly abort: () => void
} {
  if (replica === undefined) throw new Error('no such replica')
  const ended = deferred<UpstreamFault | 'end'>()
  const stream = replica.open(
    {
      method: 'POST',
      path: '/v1/chat/completions',
      headers: {},
      body: [Buffer.from('{}')],
      firstByteTimeoutMs: 60_000,
      betweenBytesTimeoutMs: 60_000,
    },
    {
      onHeaders: () => undefined,
      onBytes: () => undefined,
      onEnd: () => ended.resolve('end'),
      onFault: ended.resolve,
    },
  )
  return { fault: within(ended.promise, 'the exchange to end'), abort: () => stream.abort() }
}
