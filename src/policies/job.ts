/** A waiting request as a decision sees it: its deadline for the first token, its work, its worth. */
import { offerPairs } from '../core/attention.ts'
import type { ReplicaId } from '../core/request.ts'
import { firstTokenDeadlineAtMs, hasTargets } from '../core/request.ts'
import type { Ms, Tokens } from '../core/units.ts'
import type { Waiter } from '../core/waiting-room.ts'
import type { Standing } from './fairness/pool-fairness.ts'
import { keptBy } from './kept.ts'
import type { Learnt } from './learnt.ts'

/** Quantile of the output length that e2e deadlines and slot times are planned with. */
const PLAN_LENGTH_QUANTILE = 0.5
const E2E_LENGTH_QUANTILE = 0.75

export interface Job extends Standing {
  readonly waiter: Waiter
  /** Latest first token, absolute; undefined when the class promises nothing (any more). */
  readonly deadlineAtMs: Ms | undefined
  /** When the promise is broken for certain; later than the deadline where that counts on the answer's length. */
  readonly breaksAtMs: Ms | undefined
  /** A promise was made and can't be kept any more. */
  readonly late: boolean
  readonly tpotMs: Ms | undefined
  readonly outputTokens: Tokens
  readonly cachedTokens: ReadonlyMap<ReplicaId, Tokens>
}

/** What is looked up once and kept for a while: neither changes much while a request waits. */
interface Facts {
  readonly readAtMs: Ms
  readonly outputTokens: Tokens
  readonly e2eTokens: Tokens
  readonly cachedTokens: ReadonlyMap<ReplicaId, Tokens>
  /** What was made of it, while that holds: its deadline hangs on nothing else. */
  job?: Job
}

const factsKept = keptBy<Waiter, Facts>()

function factsOf(waiter: Waiter, learnt: Learnt, nowMs: Ms, keptMs: Ms): Facts {
  const kept = factsKept(learnt).get(waiter)
  if (kept !== undefined && nowMs - kept.readAtMs < keptMs) return kept
  const { offer } = waiter
  const facts: Facts = {
    readAtMs: nowMs,
    outputTokens: learnt.remaining(offer, 0, PLAN_LENGTH_QUANTILE),
    // A deadline hangs on it only where the whole answer has one.
    e2eTokens: offer.slo.e2eMs === undefined ? 0 : learnt.remaining(offer, 0, E2E_LENGTH_QUANTILE),
    cachedTokens: learnt.prefixes.cachedTokens(offer),
  }
  factsKept(learnt).set(waiter, facts)
  return facts
}

/** Waiters whose promise is broken already: they stay leftovers, however many there are. */
const broken = keptBy<Waiter, true>()

/** True when nothing was promised to it, or nothing that can still be kept. */
export function isLeftover(waiter: Waiter, learnt: Learnt): boolean {
  return !hasTargets(waiter.offer.slo) || broken(learnt).has(waiter)
}

/**
 * Reads a waiter; its lengths and what is cached of it may be `keptMs` old. `typicalStepMs` is a decode step of its pool
 * now, for classes with an end-to-end target.
 */
export function jobOf(
  waiter: Waiter,
  { value, owed }: Standing,
  learnt: Learnt,
  typicalStepMs: Ms,
  nowMs: Ms,
  keptMs: Ms,
): Job {
  const { offer } = waiter
  const facts = factsOf(waiter, learnt, nowMs, keptMs)
  const made = facts.job
  if (made?.value === value && made.owed === owed && (made.breaksAtMs ?? Number.POSITIVE_INFINITY) > nowMs)
    return made
  const deadlineAtMs = firstTokenDeadlineAtMs(offer, facts.e2eTokens * typicalStepMs)
  // Only a fact breaks a promise, never a guess of how long the answer will be.
  const breaksAtMs = firstTokenDeadlineAtMs(offer)
  const late = broken(learnt).has(waiter) || (breaksAtMs !== undefined && breaksAtMs <= nowMs)
  if (late) broken(learnt).set(waiter, true)
  const job = {
    waiter,
    deadlineAtMs: late ? undefined : deadlineAtMs,
    breaksAtMs: late ? undefined : breaksAtMs,
    late,
    tpotMs: offer.steerTpotMs ?? offer.slo.tpotMs,
    outputTokens: facts.outputTokens,
    cachedTokens: facts.cachedTokens,
    value,
    owed,
  }
  if (!late && offer.slo.e2eMs === undefined) facts.job = job
  return job
}

/** The next instant after `afterMs` at which one of these promises gets too late, by a guess or for certain; else Infinity. */
export function nextLossAtMs(jobs: readonly Job[], afterMs: Ms): Ms {
  let soonestAtMs = Number.POSITIVE_INFINITY
  for (const { deadlineAtMs, breaksAtMs } of jobs) {
    for (const atMs of [deadlineAtMs, breaksAtMs]) {
      if (atMs !== undefined && atMs > afterMs) soonestAtMs = Math.min(soonestAtMs, atMs)
    }
  }
  return soonestAtMs
}

/** Prompt tokens that the replica would have to compute; at least one. */
export function uncachedTokens(job: Job, replicaId: ReplicaId): Tokens {
  return Math.max(1, job.waiter.offer.promptTokens - (job.cachedTokens.get(replicaId) ?? 0))
}

/** The `attentionPairs` of so many tokens of it. */
export function pairsOfJob({ waiter }: Job, uncachedTokens: Tokens): number {
  return offerPairs(waiter.offer, uncachedTokens)
}
