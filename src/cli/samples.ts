/** Reads the running parts for metrics and questions: replicas with their books, the waiting room, trust. */
import type { ClassWaiting } from '../admin/ports.ts'
import type { Config } from '../config/config.ts'
import { classFor } from '../config/config.ts'
import type { Gate } from '../core/gate.ts'
import type { Scheduler } from '../core/scheduler.ts'
import type { Ms } from '../core/units.ts'
import type { Waiter } from '../core/waiting-room.ts'
import { ANONYMOUS } from '../edge/auth.ts'
import { NO_PRODUCT } from '../edge/classify.ts'
import type { SloCatalog } from '../slo/attainment.ts'
import type { LoadedConfig } from '../telemetry/observer.ts'
import type { RuntimeMonitor } from '../telemetry/runtime.ts'
import type {
  HoldingSample,
  LedgerSample,
  ReplicaSample,
  SamplePorts,
  WorkerSample,
} from '../telemetry/samples.ts'
import type { ManagedFleet } from '../upstream/fleet.ts'

export interface SampledParts {
  readonly gate: Gate
  readonly predictor: () => Scheduler | undefined
  readonly fleet: () => ManagedFleet
  readonly holding: () => HoldingSample
  readonly config: () => Config
  readonly monitor: RuntimeMonitor
  readonly workers: () => readonly WorkerSample[]
}

export function samplePorts({
  gate,
  predictor,
  fleet,
  holding,
  config,
  monitor,
  workers,
}: SampledParts): SamplePorts {
  return {
    replicas: () =>
      fleet()
        .reports()
        .map((report) => replicaSample(report, gate, fleet())),
    waiting: () => {
      const { requests, tokens, bytes } = gate.state.waiting
      return { requests, tokens, bytes }
    },
    holding,
    trust: () => {
      const predicting = predictor()
      if (predicting === undefined) return []
      return config().models.map(({ name }) => ({ model: name, state: predicting.trust(name) }))
    },
    runtime: () => monitor.sample(),
    instances: () => config().instances,
    workers,
    replicasWanted: (model, demand) => {
      const predicting = predictor()
      if (predicting === undefined || predicting.trust(model) === 'fallback') return undefined
      return predicting.replicasWanted(gate.state, model, demand)
    },
  }
}

function replicaSample(
  report: ReturnType<ManagedFleet['reports']>[number],
  gate: Gate,
  fleet: ManagedFleet,
): ReplicaSample {
  const { replicaId, pools, state, generation, limits, gauges } = report
  return {
    id: replicaId,
    name: fleet.replica(replicaId)?.name ?? replicaId,
    models: pools,
    state,
    generation,
    limits,
    ...(gauges === undefined ? {} : { gauges }),
    connections: fleet.openSockets(replicaId),
    ledger: ledgerSample(gate, replicaId),
  }
}

function ledgerSample(gate: Gate, replicaId: string): LedgerSample {
  const ledger = gate.state.replicas.get(replicaId)
  return {
    inFlightRequests: ledger?.inFlightRequests ?? 0,
    prefillingRequests: ledger?.prefilling.size ?? 0,
    decodingSequences: ledger?.decodingSequences ?? 0,
    backlogTokens: ledger?.backlogTokens ?? 0,
    contextTokens: ledger?.contextTokens ?? 0,
  }
}

/** Sums the waiting room up by class, in the order of whose first waiter came first. */
export function waitingByClass(waiters: Iterable<Waiter>, nowMs: Ms): readonly ClassWaiting[] {
  const classes = new Map<string, ClassWaiting>()
  for (const { offer, enteredAtMs } of waiters) {
    const { name } = offer.slo
    const sum = classes.get(name) ?? { class: name, requests: 0, tokens: 0, oldestMs: 0 }
    classes.set(name, {
      class: name,
      requests: sum.requests + 1,
      tokens: sum.tokens + offer.promptTokens,
      oldestMs: Math.max(sum.oldestMs, nowMs - enteredAtMs),
    })
  }
  return [...classes.values()]
}

/** The names under which attainment is kept. */
export function sloCatalog(config: Config): SloCatalog {
  return {
    models: config.models.map(({ name }) => name),
    classes: Object.keys(config.classes),
    products: [...config.products.map(({ name }) => name), NO_PRODUCT],
    tenants: config.auth.kind === 'none' ? [ANONYMOUS.name] : config.tenants.map(({ name }) => name),
    tenantShares: Object.fromEntries(config.tenants.map(({ name, share }) => [name, share])),
    classFor: (className, model) => classFor(config, className, model),
    periodMs: config.slo.windowMs,
  }
}

/** What the observer is told of a configuration that comes into force. */
export function loadedFacts(config: Config): LoadedConfig {
  const servedNames = Object.fromEntries(config.models.map(({ name, servedName }) => [name, servedName]))
  return { catalog: sloCatalog(config), digest: config.digest, mode: config.mode, servedNames }
}
