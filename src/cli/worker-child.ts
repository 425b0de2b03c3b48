/** A child that relays: the traffic port, shared with its siblings, and an edge that asks the decider. */
import type { Config } from '../config/config.ts'
import { createGate, type Gate } from '../core/gate.ts'
import type { GateSettings, TenantLimits } from '../core/gate-settings.ts'
import type { TraceSampler } from '../edge/request-trace.ts'
import { createTrafficServer } from '../edge/server.ts'
import { createLeastOutstanding } from '../policies/plain/least-outstanding.ts'
import { judge } from '../slo/judge.ts'
import { createLog, errorFields, type Log, type LogLevel } from '../telemetry/log.ts'
import { type RuntimeMonitor, SHARED_RESOLUTION_MS, startRuntimeMonitor } from '../telemetry/runtime.ts'
import type { Setup } from '../workers/orders.ts'
import { Worker, type WorkerSettings } from '../workers/worker.ts'
import { type ChildDuties, report, serveOrders } from './child.ts'
import { gateSettings } from './gate-parts.ts'
import { closeServer, listen } from './listen.ts'
import { openSampler } from './otel.ts'

async function start(setup: Setup<Config>): Promise<ChildDuties> {
  const log = createLog({ level: setup.logLevel as LogLevel, nowMs: () => performance.now() })
  const monitor = startRuntimeMonitor(SHARED_RESOLUTION_MS)
  let { config } = setup
  const alone = createGate({ settings: gateShare(config), scheduler: createLeastOutstanding(), judge })
  const sampler = await openSampler(process.env)
  const { worker, welcome } = createWorker(setup, { alone, log, monitor, sampler })
  const { edge, observer } = worker
  const server = createTrafficServer({ edge, observer, rng: Math.random })
  const stop = async () => {
    await worker.close()
    await closeServer(server)
    monitor.close()
    log.flush()
  }
  if (setup.place !== undefined) worker.goTo(setup.place)
  const serving = welcome.then(async () => {
    report({ kind: 'ready', port: await listen(server, config.listen, 'listen') })
  })
  return {
    serving,
    goTo: (place) => worker.goTo(place),
    configure(changed) {
      config = changed
      worker.configure(edgeShare(config))
      edge.dispatcher.tell({ kind: 'configured', settings: gateShare(config) })
    },
    async drain() {
      await edge.drain.begin(config.timeouts.drainMs)
      await stop()
      process.exit(0)
    },
    hurry: () => edge.drain.now(),
    stop,
  }
}

interface Parts {
  readonly alone: Gate
  readonly log: Log
  readonly monitor: RuntimeMonitor
  readonly sampler: TraceSampler | undefined
}

/** `welcome` resolves when the first decider has told of its replicas. */
function createWorker(setup: Setup<Config>, { alone, log, monitor, sampler }: Parts) {
  const { worker: number } = setup
  let onWelcome = () => {}
  const welcome = new Promise<void>((resolve) => {
    onWelcome = resolve
  })
  const worker = new Worker({
    worker: number,
    settings: edgeShare(setup.config),
    alone,
    sampler,
    health() {
      const { cpuSec, residentBytes, loopLag } = monitor.sample()
      return { cpuSec, residentBytes, loopLagP99Ms: loopLag.p99Ms }
    },
    onWelcome,
    onNotice: (event, fields) => log.line('warn', event, { worker: number, ...fields }),
    onFault: (error) => log.often('fault', 'error', 'fault', { worker: number, ...errorFields(error) }),
  })
  return { worker, welcome }
}

/** What this worker may hold: bodies are held by each for itself, so their bound is divided. */
function edgeShare(config: Config): WorkerSettings {
  const { limits, workers } = config
  const bufferedBytes = Math.max(limits.bodyBytes, Math.floor(limits.bufferedBytes / workers))
  return { ...config, limits: { ...limits, bufferedBytes } }
}

/** What the gate obeys while each worker decides alone: limits are divided, since nobody counts for all. */
function gateShare(config: Config): GateSettings {
  const { workers } = config
  const settings = gateSettings(config)
  const tenants = Object.entries(settings.tenants).map(([name, limits]) => [name, shareOf(limits, workers)])
  return { ...settings, tenants: Object.fromEntries(tenants) }
}

function shareOf(
  { concurrentRequests, requestsPerSec, tokensPerMin }: TenantLimits,
  workers: number,
): TenantLimits {
  const concurrent = Math.max(1, Math.floor((concurrentRequests ?? 1) / workers))
  return {
    ...(concurrentRequests === undefined ? {} : { concurrentRequests: concurrent }),
    ...(requestsPerSec === undefined ? {} : { requestsPerSec: requestsPerSec / workers }),
    ...(tokensPerMin === undefined ? {} : { tokensPerMin: tokensPerMin / workers }),
  }
}

serveOrders(start)
