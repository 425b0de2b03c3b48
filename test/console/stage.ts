/** A console with a past: the real gate before simulated engines, stopped in the middle of an overload. */
import type { AdminPorts } from '../../src/admin/ports.ts'
import { DEMO_CLASSES, DEMO_LENGTH_RATIO, DEMO_PROFILE } from '../../src/cli/demo-scenario.ts'
import { waitingByClass } from '../../src/cli/samples.ts'
import type { GateEffect } from '../../src/core/effects.ts'
import type { ReplicaState } from '../../src/core/replica.ts'
import type { GateState, Scheduler } from '../../src/core/scheduler.ts'
import { createSluice } from '../../src/policies/sluice.ts'
import { profile } from '../../src/sim/profiles.ts'
import { steadyRate } from '../../src/sim/rates.ts'
import { simulate } from '../../src/sim/run.ts'
import { generateWorkload } from '../../src/sim/workload.ts'
import type { SloCatalog } from '../../src/slo/attainment.ts'
import { DAY_MS, MINUTE_MS } from '../../src/slo/windows.ts'
import { createLog } from '../../src/telemetry/log.ts'
import { createObserver, type Observer } from '../../src/telemetry/observer.ts'
import type { ReplicaSample, SamplePorts } from '../../src/telemetry/samples.ts'
import { adminPorts } from '../support/admin-stage.ts'

const MODEL = 'model'
const REPLICAS = 4
/** Virtual time that has passed when the console is looked at, and the wall clock then. */
const LOOKED_AT_MS = 17 * MINUTE_MS
const LOOKED_AT_UNIX_MS = Date.UTC(2026, 5, 12, 14, 20, 7)
/** Minutes at so many requests a second, some more than are played. */
const RATES: readonly (readonly [minutes: number, perSec: number])[] = [
  [4, 14],
  [2, 22],
  [2, 34],
  [4, 16],
  [3, 24],
  [3, 38],
]

const catalog: SloCatalog = {
  models: [MODEL],
  classes: Object.keys(DEMO_CLASSES),
  products: ['default'],
  classFor: (name) => DEMO_CLASSES[name],
  periodMs: 30 * DAY_MS,
}

/** What is frozen at the instant of looking. */
interface Frozen {
  readonly replicas: readonly ReplicaSample[]
  readonly waiting: ReturnType<SamplePorts['waiting']>
  readonly byClass: ReturnType<AdminPorts['waitingByClass']>
}

let played: AdminPorts | undefined

/** The ports after a quarter of an hour in virtual time, played once; the same in each run. */
export function stagedPorts(change: Partial<AdminPorts> = {}): AdminPorts {
  played ??= playedPorts()
  return { ...played, ...change }
}

function playedPorts(): AdminPorts {
  let nowMs = 0
  let state: GateState | undefined
  let frozen: Frozen | undefined
  const samples: SamplePorts = {
    replicas: () => frozen?.replicas ?? [],
    waiting: () => frozen?.waiting ?? { requests: 0, tokens: 0, bytes: 0 },
    holding: () => ({ clientConnections: 0, bodyBytes: 0 }),
    trust: () => [{ model: MODEL, state: 'trusted' }],
    replicasWanted: () => undefined,
    runtime: () => ({
      loopLag: { p50Ms: 0, p99Ms: 0, maxMs: 0 },
      cpuSec: 0,
      residentBytes: 0,
      startedAtUnixSec: (LOOKED_AT_UNIX_MS - LOOKED_AT_MS) / 1000,
    }),
  }
  const log = createLog({ level: 'silent', nowMs: () => nowMs })
  const observer = createObserver({
    catalog,
    ports: samples,
    build: { version: '0.1.0', nodeVersion: process.version },
    log,
    nowMs: () => nowMs,
    unixMs: () => LOOKED_AT_UNIX_MS,
  })
  observer.onLoaded({ catalog, digest: '5f2c9a1e77d0', mode: 'enforce' })
  const happenings = watchHappenings(observer)
  play({
    onState: (seen) => {
      state = seen
    },
    onEffect: (effect, atMs) => {
      if (frozen !== undefined) return
      nowMs = Math.min(atMs, LOOKED_AT_MS)
      if (state !== undefined) happenings(state, nowMs)
      if (atMs >= LOOKED_AT_MS && state !== undefined) frozen = freeze(state, nowMs)
      else tell(observer, effect)
    },
  })
  return adminPorts({
    observer,
    samples,
    waitingByClass: () => frozen?.byClass ?? [],
    configDigest: () => '81d4e07ab3c2',
    nowMs: () => nowMs,
    unixMs: () => LOOKED_AT_UNIX_MS,
  })
}

interface Watcher {
  onState(state: GateState): void
  onEffect(effect: GateEffect, nowMs: number): void
}

function play({ onState, onEffect }: Watcher): void {
  const engine = { profile: profile(DEMO_PROFILE), jitterRatio: 0.05 }
  const segments = RATES.flatMap(([minutes, perSec]) => steadyRate(perSec, minutes * MINUTE_MS))
  const fault = { kind: 'dead', replicaIndex: 2, fromMs: 9.2 * MINUTE_MS, toMs: 10.5 * MINUTE_MS } as const
  simulate({
    replicas: Array.from({ length: REPLICAS }, () => ({ engine })),
    faults: [fault],
    requests: generateWorkload({ seed: 7, lengthRatio: DEMO_LENGTH_RATIO, segments }),
    classes: DEMO_CLASSES,
    createScheduler: () => watched(createSluice({ priors: {} }), onState),
    onEffect,
    drainMs: 1000,
  })
}

/** Lets the gate's state be seen as each plan sees it. */
function watched(scheduler: Scheduler, onState: (state: GateState) => void): Scheduler {
  const plan = scheduler.plan.bind(scheduler)
  return Object.assign(scheduler, {
    plan: (state: GateState, nowMs: number) => {
      onState(state)
      return plan(state, nowMs)
    },
  })
}

function tell(observer: Observer, effect: GateEffect): void {
  if (effect.kind === 'dispatch' || effect.kind === 'shed') observer.onDecision(effect.record)
  if (effect.kind === 'settled') observer.onSettled(effect.settlement)
}

/** What happens beside the requests: a reload, replicas that come and go, states of the promises. */
function watchHappenings(observer: Observer): (state: GateState, nowMs: number) => void {
  const states = new Map<string, ReplicaState>()
  let healthAtMs = 0
  let reloaded = false
  return ({ replicas }, nowMs) => {
    for (const { replicaId, report } of replicas.values()) {
      const from = states.get(replicaId)
      if (from !== report.state) observer.onReplicaState(replicaId, from, report.state)
      states.set(replicaId, report.state)
    }
    if (nowMs - healthAtMs >= 10_000) {
      healthAtMs = nowMs
      observer.health()
    }
    if (reloaded || nowMs < 5 * MINUTE_MS) return
    reloaded = true
    const changes = ['classes.chat.weight: 1 → 2']
    observer.onLoaded({ catalog, digest: '81d4e07ab3c2', mode: 'enforce' }, { changes })
  }
}

function freeze({ replicas, waiting }: GateState, nowMs: number): Frozen {
  return {
    replicas: [...replicas.values()].map((ledger) => ({
      id: ledger.replicaId,
      name: ledger.replicaId,
      models: [MODEL],
      state: ledger.report.state,
      generation: ledger.report.generation,
      limits: ledger.report.limits,
      ...(ledger.report.gauges === undefined ? {} : { gauges: { ...ledger.report.gauges } }),
      connections: 2,
      ledger: {
        inFlightRequests: ledger.inFlightRequests,
        prefillingRequests: ledger.prefilling.size,
        decodingSequences: ledger.decodingSequences,
        backlogTokens: ledger.backlogTokens,
        contextTokens: ledger.contextTokens,
      },
    })),
    waiting: { requests: waiting.requests, tokens: waiting.tokens, bytes: waiting.bytes },
    byClass: waitingByClass(waiting, nowMs),
  }
}
