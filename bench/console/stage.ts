/** An admin port to be looked at: a fleet that moves, and an observer fed with requests as they would end. */
import type { Offer, SloClass } from '../../src/core/request.ts'
import { DAY_MS } from '../../src/slo/windows.ts'
import { createLog } from '../../src/telemetry/log.ts'
import { createObserver, type Observer } from '../../src/telemetry/observer.ts'
import type { ReplicaSample, SamplePorts } from '../../src/telemetry/samples.ts'
import { offerOf, settlementOf, sloOf } from '../../test/slo/facts.ts'
import { adminPorts, type ServedAdmin, serveAdmin } from '../../test/support/admin-stage.ts'
import { decisionOf, replicaOf } from '../../test/telemetry/rig.ts'

export interface FleetSize {
  readonly name: string
  readonly classes: number
  readonly replicas: number
}

export const REQUESTS_PER_SEC = 50
/** Requests that have ended before anybody looks. */
const PAST_REQUESTS = 2000
/** One in so many is refused. */
const SHED_EVERY = 8

function classesOf(count: number): readonly SloClass[] {
  return Array.from({ length: count }, (_, index) =>
    sloOf({ name: `class-${index}`, ttftMs: 500, tpotMs: 50, objectiveRatio: 0.99 }),
  )
}

function replicasAt(count: number, nowMs: number): readonly ReplicaSample[] {
  return Array.from({ length: count }, (_, index) =>
    replicaOf({
      id: `m-${index}`,
      name: `m-${index}`,
      gauges: {
        seenAtMs: nowMs - (index % 500),
        runningRequests: 8,
        waitingRequests: 0,
        kvUsageRatio: ((index * 37 + nowMs / 1000) % 100) / 100,
      },
      ledger: {
        inFlightRequests: Math.round(nowMs / 700 + index) % 24,
        prefillingRequests: 1,
        decodingSequences: 7,
        backlogTokens: Math.round(nowMs / 3 + index * 91) % 4000,
        contextTokens: 9000,
      },
    }),
  )
}

function tell(observer: Observer, offer: Offer, number: number, replicas: number): void {
  const refused = number % SHED_EVERY === 0
  const candidates = Array.from({ length: Math.min(8, replicas) }, (_, index) => ({
    replicaId: `m-${(number + index) % replicas}`,
    predictedTtftMs: 200 + index * 40,
    boundTtftMs: 250 + index * 50,
    uncachedTokens: 200,
    backlogTokens: 100 * index,
    runningSequences: 7,
    gate: 'ok' as const,
  }))
  const atMs = offer.receivedAtMs + 100
  const replicaId = `m-${number % replicas}`
  if (refused) {
    const refusal = { kind: 'shed', reason: 'slo_unreachable', retryAfterMs: 1200 } as const
    observer.onDecision(decisionOf(offer, { atMs, candidates, verdict: refusal }))
    const facts = { outcome: 'shed', shedReason: 'slo_unreachable', e2eMs: 20, outputTokens: 0 } as const
    observer.onSettled(settlementOf({ offer, ...facts, attempts: 0 }))
    return
  }
  observer.onDecision(
    decisionOf(offer, { atMs, candidates, verdict: { kind: 'admit', replicaId, permitId: number } }),
  )
  const facts = { ttftMs: 150 + (number % 400), tpotMs: 20 + (number % 35), outputTokens: 90 }
  observer.onSettled({
    ...settlementOf({ offer, promptTokens: offer.promptTokens, ...facts }),
    replicaId,
    predictedTtftMs: 210,
  })
}

/** Feeds the observer with what is past at once and then at a steady rate, until told to stop. */
function feed(observer: Observer, classes: readonly SloClass[], replicas: number): () => void {
  let number = 0
  const one = () => {
    number += 1
    const slo = classes[number % classes.length]
    if (slo === undefined) return
    const offer = offerOf(slo, {
      requestId: `request-${number}`,
      receivedAtMs: performance.now() - 3000,
      promptTokens: 200 + (number % 900),
    })
    tell(observer, offer, number, replicas)
  }
  for (let index = 0; index < PAST_REQUESTS; index += 1) one()
  const timer = setInterval(one, 1000 / REQUESTS_PER_SEC)
  return () => clearInterval(timer)
}

/** Serves the port and starts the traffic. */
export async function startStage({ classes: classCount, replicas }: FleetSize): Promise<ServedAdmin> {
  const classes = classesOf(classCount)
  const nowMs = () => performance.now()
  const samples: SamplePorts = {
    replicas: () => replicasAt(replicas, nowMs()),
    waiting: () => ({ requests: 40, tokens: 30_000, bytes: 120_000 }),
    holding: () => ({ clientConnections: 60, bodyBytes: 120_000 }),
    trust: () => [{ model: 'm', state: 'trusted' }],
    replicasWanted: () => undefined,
    runtime: () => ({
      loopLag: { p50Ms: 0, p99Ms: 0, maxMs: 0 },
      cpuSec: 0,
      residentBytes: 0,
      startedAtUnixSec: 0,
    }),
  }
  const catalog = {
    models: ['m'],
    classes: classes.map(({ name }) => name),
    products: ['p'],
    classFor: (name: string) => classes.find((slo) => slo.name === name),
    periodMs: 30 * DAY_MS,
  }
  const log = createLog({ level: 'silent', nowMs })
  const build = { version: 'bench', nodeVersion: process.version }
  const observer = createObserver({ catalog, ports: samples, build, log, nowMs, unixMs: Date.now })
  const waitingByClass = () =>
    classes.map(({ name }, index) => ({
      class: name,
      requests: index + 1,
      tokens: 900,
      oldestMs: nowMs() % 1000,
    }))
  const served = await serveAdmin(adminPorts({ observer, samples, waitingByClass, nowMs, unixMs: Date.now }))
  const stopFeed = feed(observer, classes, replicas)
  return {
    url: served.url,
    close: () => {
      stopFeed()
      return served.close()
    },
  }
}
