/** An observer with a clock to turn by hand, sampled parts to set, and its log lines in an array. */
import { type DecisionRecord, RECORD_VERSION } from '../../src/core/records.ts'
import type { Offer } from '../../src/core/request.ts'
import type { SloCatalog } from '../../src/slo/attainment.ts'
import { DAY_MS } from '../../src/slo/windows.ts'
import { createLog } from '../../src/telemetry/log.ts'
import { createObserver } from '../../src/telemetry/observer.ts'
import type { ReplicaSample, SamplePorts, TrustSample } from '../../src/telemetry/samples.ts'
import { offerOf, settlementOf, sloOf } from '../slo/facts.ts'

export const chat = sloOf({ name: 'chat', ttftMs: 450, tpotMs: 55, objectiveRatio: 0.99 })
export const agent = sloOf({ name: 'agent', ttftMs: 2000, e2eMs: 17_000, objectiveRatio: 0.9 })
export const batch = sloOf({ name: 'batch' })

export const catalog: SloCatalog = {
  models: ['m'],
  classes: ['chat', 'agent', 'batch'],
  products: ['p', 'none'],
  classFor: (name) => ({ chat, agent, batch })[name],
  periodMs: 30 * DAY_MS,
}

export function replicaOf(change: Partial<ReplicaSample> = {}): ReplicaSample {
  const ledger = {
    inFlightRequests: 3,
    prefillingRequests: 1,
    decodingSequences: 2,
    backlogTokens: 700,
    contextTokens: 4000,
  }
  return {
    id: 'http://10.0.0.1:8000',
    name: 'r1',
    models: ['m'],
    state: 'live',
    generation: 1,
    limits: {},
    connections: 4,
    ledger,
    ...change,
  }
}

export function decisionOf(offer: Offer, change: Partial<DecisionRecord> = {}): DecisionRecord {
  return {
    version: RECORD_VERSION,
    atMs: 5,
    offer,
    attempt: 1,
    waitedMs: 2,
    trusted: true,
    candidates: [
      {
        replicaId: 'r1',
        predictedTtftMs: 210,
        uncachedTokens: 200,
        backlogTokens: 90,
        runningSequences: 4,
        gate: 'ok',
      },
    ],
    verdict: { kind: 'admit', replicaId: 'r1', permitId: 1 },
    configDigest: 'abc',
    ...change,
  }
}

export function good(offer: Partial<Offer> = {}) {
  return settlementOf({ offer: offerOf(chat, offer), ttftMs: 300, tpotMs: 30 })
}

export function shed(offer: Partial<Offer> = {}) {
  const shape = { outcome: 'shed', shedReason: 'slo_unreachable', attempts: 0, outputTokens: 0 } as const
  return settlementOf({ offer: offerOf(chat, offer), ...shape })
}

export function rig() {
  const clock = { nowMs: 0, unixMs: 1_700_000_000_000 }
  const parts: {
    replicas: ReplicaSample[]
    trust: TrustSample[]
    waiting: ReturnType<SamplePorts['waiting']>
    replicasWanted: number | undefined
  } = {
    replicas: [replicaOf()],
    trust: [{ model: 'm', state: 'trusted' }],
    waiting: { requests: 2, tokens: 900, bytes: 4000 },
    replicasWanted: undefined,
  }
  const samples: SamplePorts = {
    replicas: () => parts.replicas,
    trust: () => parts.trust,
    waiting: () => parts.waiting,
    holding: () => ({ clientConnections: 7, bodyBytes: 8000 }),
    replicasWanted: () => parts.replicasWanted,
    runtime: () => ({
      loopLag: { p50Ms: 1, p99Ms: 2, maxMs: 3 },
      cpuSec: 4,
      residentBytes: 5,
      startedAtUnixSec: 6,
    }),
  }
  const text: string[] = []
  const nowMs = () => clock.nowMs
  const log = createLog({ destination: { write: (line: string) => void text.push(line) }, nowMs })
  const build = { version: '0.1.0', nodeVersion: 'v20' }
  const observer = createObserver({ catalog, ports: samples, build, log, nowMs, unixMs: () => clock.unixMs })
  const lines = (event?: string): Record<string, unknown>[] =>
    text.map((line) => JSON.parse(line)).filter((line) => event === undefined || line.event === event)
  return { clock, parts, samples, observer, lines, text }
}

/** Samples of a page by `name{labels}`. */
export function samplesOf(page: string): Map<string, number> {
  const samples = new Map<string, number>()
  for (const line of page.split('\n')) {
    const match = /^([a-z_]+(?:\{.*\})?) (\S+)$/.exec(line)
    if (match?.[1] !== undefined) samples.set(match[1], Number(match[2]?.replace('Inf', 'Infinity')))
  }
  return samples
}
