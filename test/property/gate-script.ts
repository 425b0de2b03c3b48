/** Random scripts for a gate: each command is plain numbers, so that every sequence is possible and shrinks well. */
import fc from 'fast-check'
import { BOUNCE_CAUSES } from '../../src/core/events.ts'
import type { GateSettings } from '../../src/core/gate-settings.ts'
import type { ReplicaState } from '../../src/core/replica.ts'
import type { OverloadAction } from '../../src/core/request.ts'
import { reportOf, settingsOf } from '../core/core-rig.ts'
import { offerOf, sloOf } from '../slo/facts.ts'
import type { GateWorld } from './gate-world.ts'

const OPS = [
  ...new Array<'offer'>(8).fill('offer'),
  ...new Array<'firstToken'>(6).fill('firstToken'),
  ...new Array<'progress'>(3).fill('progress'),
  ...new Array<'settle'>(4).fill('settle'),
  ...new Array<'pass'>(4).fill('pass'),
  'bounce',
  'bounce',
  'bounce',
  'cancel',
  'cancel',
  'replica',
  'remove',
  'configure',
  'tick',
] as const

export interface Command {
  readonly op: (typeof OPS)[number]
  readonly a: number
  readonly b: number
  readonly c: number
}

const number = fc.nat(9999)
export const script: fc.Arbitrary<readonly Command[]> = fc.array(
  fc.record({ op: fc.constantFrom(...OPS), a: number, b: number, c: number }),
  { maxLength: 90, size: 'max' },
)

const OVERLOADS: readonly OverloadAction[] = ['shed', 'demote', 'wait']
const STATES: readonly ReplicaState[] = ['live', 'live', 'ramping', 'suspect', 'down', 'draining']
const OUTCOMES = [
  'completed',
  'completed',
  'completed',
  'truncated',
  'upstream_timeout',
  'client_left',
  'client_error',
  'draining',
] as const

export function pick<T>(from: readonly T[], index: number): T {
  const one = from[index % from.length]
  if (one === undefined) throw new Error('nothing to pick from')
  return one
}

function sloFor({ a, b, c }: Command) {
  return sloOf({
    name: `class${a % 5}`,
    maxWaitMs: pick([0, 100, 1000, 30_000], c),
    overload: pick(OVERLOADS, b),
    weight: 1 + (a % 3),
    ...(a % 5 === 0 ? {} : { ttftMs: pick([50, 300, 2000], a) }),
    ...(b % 3 === 0 ? {} : { tpotMs: pick([8, 50, 200], b) }),
    ...(c % 4 === 0 ? { e2eMs: pick([500, 5000], c) } : {}),
  })
}

function offerFor(world: GateWorld, { a, b, c }: Command) {
  return offerOf(sloFor({ op: 'offer', a, b, c }), {
    requestId: `q${world.stories.size}`,
    pool: pick(['m', 'm', 'n'], b),
    tenant: pick(['t', 'u', 'v'], c),
    kind: c % 17 === 0 ? 'compute' : 'generate',
    receivedAtMs: world.nowMs - (a % 3),
    promptTokens: 1 + (a % 100) * (b % 50) + (c % 7) / 7,
    sequences: 1 + (c % 9 === 0 ? c % 4 : 0),
    bodyBytes: a,
    streamed: b % 4 !== 0,
    prefixHashes: Array.from({ length: a % 4 }, (_, depth) => `h${c % 3}/${depth}`),
    prefixBlockTokens: 64,
    ...(a % 2 === 0 ? { maxOutputTokens: 1 + (c % 500) } : {}),
    ...(b % 11 === 0 ? { clientDeadlineAtMs: world.nowMs + (c % 900) } : {}),
    ...(a % 13 === 0 ? { steerTtftMs: 40 + (c % 200) } : {}),
  })
}

function settingsFor({ a, b, c }: Command): GateSettings {
  const limits = pick(
    [{}, { t: { concurrentRequests: 2 } }, { u: { requestsPerSec: 3, tokensPerMin: 9000 } }],
    c,
  )
  return settingsOf({
    waiting: { requests: a % 12, bytes: 500 + b * 5, tokens: 500 + c * 5 },
    rerouteBudgetRatio: pick([0, 0.1, 1], a),
    instances: 1 + (b % 2),
    tenants: limits,
    configDigest: `c${a}`,
  })
}

function replicaFor(world: GateWorld, { a, b, c }: Command) {
  const replicaId = `r${a % 4}`
  const known = world.gate.state.replicas.get(replicaId)?.report
  const gauges = {
    seenAtMs: world.nowMs,
    runningRequests: a % 20,
    waitingRequests: b % 3,
    kvUsageRatio: (c % 100) / 100,
  }
  return reportOf(replicaId, {
    pools: pick([['m'], ['n'], ['m', 'n']], b),
    groupId: pick(['g', 'g', 'h'], a),
    state: pick(STATES, c),
    generation: (known?.generation ?? 0) + (b % 5 === 0 ? 1 : 0),
    limits: c % 2 === 0 ? { maxNumSeqs: 8, maxNumBatchedTokens: 512, kvCapacityTokens: 9000 } : {},
    ...(c % 3 === 0 ? { gauges } : {}),
  })
}

/** Two live replicas that serve both pools. */
export function openWorld(world: GateWorld): void {
  for (const replicaId of ['r0', 'r1'])
    world.tell({ kind: 'replicaChanged', replica: reportOf(replicaId, { pools: ['m', 'n'] }) })
}

/** Serves requests in good order for a while, so that a scheduler that learns comes to trust what it learnt. */
export function warmUp(world: GateWorld): void {
  for (let i = 0; i < 24; i++) {
    const offer = offerOf(sloOf({ ttftMs: 5000, tpotMs: 500, maxWaitMs: 5000, name: 'warm' }), {
      requestId: `w${i}`,
      receivedAtMs: world.nowMs,
      promptTokens: 200 + 40 * (i % 10),
      maxOutputTokens: 40,
    })
    world.tell({ kind: 'offer', offer })
    for (const permit of [...world.permits.values()]) {
      world.pass(15 + offer.promptTokens * 0.05)
      world.firstToken(permit)
      for (let step = 0; step < 4; step++) {
        world.pass(100)
        world.progress([permit], 10)
      }
      world.settle(permit, 'completed')
    }
  }
}

/** Carries out one command; one that makes no sense now does nothing. */
export function carryOut(world: GateWorld, command: Command): void {
  const { op, a, b, c } = command
  const permits = [...world.permits.values()]
  const permit = permits.length === 0 ? undefined : pick(permits, a)
  switch (op) {
    case 'offer':
      world.tell({ kind: 'offer', offer: offerFor(world, command) })
      break
    case 'firstToken':
      if (permit !== undefined) world.firstToken(permit)
      break
    case 'progress':
      if (permits.length > 0) world.progress(permits.slice(0, 1 + (a % permits.length)), b % 20)
      break
    case 'settle':
      if (permit !== undefined) world.settle(permit, pick(OUTCOMES, b))
      break
    case 'bounce':
      if (permit !== undefined && permit.contentEvents === 0) world.bounce(permit, pick(BOUNCE_CAUSES, b))
      break
    case 'cancel': {
      const { waiting } = world
      const requestId = waiting.length === 0 ? 'nobody' : pick(waiting, a).requestId
      const outcome = pick(['cancelled', 'draining', 'upstream_timeout'] as const, b)
      world.tell({ kind: 'cancel', requestId, outcome })
      break
    }
    case 'replica': {
      const replica = replicaFor(world, command)
      world.gone.delete(replica.replicaId)
      world.tell({ kind: 'replicaChanged', replica })
      break
    }
    case 'remove': {
      const replicaId = `r${a % 4}`
      world.gone.add(replicaId)
      world.tell({ kind: 'replicaRemoved', replicaId })
      break
    }
    case 'configure':
      world.tell({ kind: 'configured', settings: settingsFor(command) })
      break
    case 'tick':
      world.tell({ kind: 'tick' })
      break
    case 'pass':
      world.pass(pick([0.5, 5, 40, 150, 1200], c) * (1 + (a % 3)))
      break
    default:
      op satisfies never
  }
}
