/** How many sequences an engine runs at once, learnt from the pages of one that does not tell. Plain values. */
import type { ReplicaLedger } from '../core/ledger.ts'
import type { ReplicaGauges } from '../core/replica.ts'
import type { ReplicaId } from '../core/request.ts'
import type { Ms, Ratio, Tokens } from '../core/units.ts'
import type { StepModel } from './step-model.ts'
import { chunkTokens } from './step-windows.ts'
import { isHeadOverdue } from './ttft.ts'

/** The most that an engine ran is forgotten by this per page, and so is evidence: half of it in a minute. */
const MOST_KEEP_RATIO: Ratio = 0.994
/** So near to the most counts as the most. */
const FULL_RATIO: Ratio = 0.95
/** From this many on one fewer also counts: of a full batch one has often just ended. */
const ONE_ENDED_FROM = 8
/**
 * A prompt that waits for the running step is begun after one; so many say that it waits for something else. So many
 * over several pages are enough to call the engine full.
 */
const UNBEGUN_STEPS = 3
const FULL_STEPS = 6
/** Prompt tokens that an engine computes in a step, at the least, when it does not tell. */
const SMALL_CHUNK_TOKENS: Tokens = 512
/** From here on it may be the KV cache that prompts wait for. */
const FULL_KV_RATIO: Ratio = 0.95
/** A page that counts more than so many times what is ours there, and so many on top, is not about ours, or is wrong. */
const OURS_FACTOR = 2
const OURS_MORE = 4
/** An older page is of another instant than the books that it is held against, in ms. */
const FRESH_MS: Ms = 100
/** Work without a promise, or that is not believed to keep it, may use this part of each room: others still find some. */
export const HELD_BACK_ROOM_RATIO: Ratio = 0.8
/** So it never takes more of the slots. When so many run and nobody waits, one more is tried a minute. */
const TRY_MORE_MS: Ms = 60_000

/** What the pages of one engine have shown. */
interface BatchSlots {
  readonly slots: number
  readonly seenAtMs: Ms
  readonly mostRunning: number
  /** Steps in which prompts were seen not to be begun while it ran its most. */
  readonly unbegunSteps: number
  /** Pages in a row on which it ran more than it was believed to. */
  readonly timesMore: number
  /** When it was last found full, or tried with one more. */
  readonly fullAtMs: Ms
}

const NOTHING_SEEN: BatchSlots = {
  slots: Number.POSITIVE_INFINITY,
  seenAtMs: Number.NEGATIVE_INFINITY,
  mostRunning: 0,
  unbegunSteps: 0,
  timesMore: 0,
  fullAtMs: Number.NEGATIVE_INFINITY,
}

/** What a page is held against. */
export interface SlotEvidence {
  readonly ledger: ReplicaLedger
  readonly model: StepModel
  /** Predictions are believed, so that a prompt can be overdue. */
  readonly isBelieved: boolean
  /** Gates that share the engine. */
  readonly instances: number
  readonly nowMs: Ms
}

/** The slots of engines that are alike. One of which nothing is known yet is taken for as large as the largest. */
export class GroupSlots {
  readonly #seen = new Map<ReplicaId, BatchSlots>()
  #largest = Number.POSITIVE_INFINITY

  /** Sequences that it is believed to run at once; Infinity while nobody knows of any of them. */
  of(replicaId: ReplicaId): number {
    const { slots } = this.#seen.get(replicaId) ?? NOTHING_SEEN
    return Number.isFinite(slots) ? slots : this.#largest
  }

  /** True when these gauges have not been read yet. */
  isNew(replicaId: ReplicaId, { seenAtMs }: ReplicaGauges): boolean {
    return this.#seen.get(replicaId)?.seenAtMs !== seenAtMs
  }

  /** To be called once with each page. */
  read(gauges: ReplicaGauges, evidence: SlotEvidence): void {
    const { replicaId } = evidence.ledger
    const seen = this.#seen.get(replicaId) ?? NOTHING_SEEN
    const slots = this.of(replicaId)
    const learnt = learnSlots({ ...seen, slots }, gauges, evidence)
    // What is only taken from the group goes on following it.
    this.#seen.set(replicaId, learnt.slots === slots ? { ...learnt, slots: seen.slots } : learnt)
    this.#compare()
  }

  /** It restarted or went away. What is known of the others holds for whoever comes. */
  forget(replicaId: ReplicaId): void {
    this.#seen.delete(replicaId)
    this.#compare()
  }

  /** Plain JSON, for people: of those that are known. */
  snapshot(): Record<ReplicaId, number> {
    const known = [...this.#seen].filter(([, { slots }]) => Number.isFinite(slots))
    return Object.fromEntries(known.map(([replicaId, { slots }]) => [replicaId, slots]))
  }

  #compare(): void {
    let largest = 0
    let isKnown = false
    for (const { slots, mostRunning } of this.#seen.values()) {
      if (Number.isFinite(slots)) isKnown = true
      largest = Math.max(largest, Number.isFinite(slots) ? slots : mostRunning)
    }
    this.#largest = isKnown ? Math.ceil(largest) : Number.POSITIVE_INFINITY
  }
}

/**
 * What is believed after a page. An engine that is full shows the same number running, its most, each time that it does
 * not begin prompts; one that has not begun a prompt that it should have done long ago is full beyond doubt. Arrivals
 * that merely wait for the running step make any engine look full, with any number running.
 */
function learnSlots(known: BatchSlots, gauges: ReplicaGauges, evidence: SlotEvidence): BatchSlots {
  const { runningRequests: running, waitingRequests: waiting, seenAtMs } = gauges
  const { ledger, instances } = evidence
  const isOurs = running + waiting <= OURS_FACTOR * ledger.inFlightSequences + OURS_MORE
  // What the other gates have there nobody knows.
  if (!isOurs && instances === 1) return { ...known, seenAtMs }
  const mostRunning = Math.max(running, known.mostRunning * MOST_KEEP_RATIO)
  const seen = { ...known, seenAtMs, mostRunning }
  // More run than was believed, or all of it with nobody waiting: one more, then two, four, at most twice as many.
  if (running > known.slots || (waiting === 0 && running >= known.slots)) {
    const timesMore = known.timesMore + 1
    const slots = Math.min(running + 2 ** (timesMore - 1), 2 * known.slots)
    return { ...seen, slots, timesMore, unbegunSteps: 0 }
  }
  const unbegunSteps = unbegunStepsAfter({ ...known, mostRunning }, gauges, evidence)
  if (unbegunSteps >= FULL_STEPS) {
    // Evidence is used once: later pages may show fewer running for want of work.
    const slots = Math.max(1, running, Math.min(known.slots, Math.ceil(mostRunning)))
    return { ...seen, slots, timesMore: 0, unbegunSteps: 0, fullAtMs: seenAtMs }
  }
  const mayTry = waiting === 0 && seenAtMs - known.fullAtMs > TRY_MORE_MS
  const isTried = mayTry && running >= Math.floor(HELD_BACK_ROOM_RATIO * known.slots)
  const more = isTried ? { slots: known.slots + 1, fullAtMs: seenAtMs } : {}
  return { ...seen, unbegunSteps, timesMore: 0, ...more }
}

function unbegunStepsAfter(known: BatchSlots, gauges: ReplicaGauges, evidence: SlotEvidence): number {
  const { runningRequests, waitingRequests } = gauges
  const { ledger, isBelieved } = evidence
  const before = known.unbegunSteps * MOST_KEEP_RATIO
  const isSeen = ledger.visibleSequences > 0
  if (waitingRequests === 0) return isSeen ? before : 0
  if (!hasBegunNone(gauges, evidence)) return 0
  // It waits for something of its own: a grammar, an adapter, KV from elsewhere.
  if (ledger.head?.overtaken === true) return before
  if (isOverdue(gauges, evidence)) return Number.isFinite(known.slots) ? before + UNBEGUN_STEPS : FULL_STEPS
  const steps = unbegunStepsOn(gauges, evidence)
  if (isNearMost(runningRequests, known.mostRunning)) return steps >= UNBEGUN_STEPS ? before + steps : before
  // Fewer run while a freed slot is filled anew, which takes nothing back of what is known. At a cold start it does:
  // the most is what has come so far.
  return isBelieved && isSeen && steps >= UNBEGUN_STEPS ? before : 0
}

function isNearMost(running: number, mostRunning: number): boolean {
  const oneEnded = mostRunning >= ONE_ENDED_FROM ? mostRunning - 1 : mostRunning
  return running >= Math.min(mostRunning * FULL_RATIO, oneEnded)
}

/**
 * Steps of the streams there in which the first prompt was not begun, although all that was before it had been: less the
 * steps that it and the prompts ahead of it may have taken, of every gate.
 */
function unbegunStepsOn({ runningRequests, seenAtMs }: ReplicaGauges, evidence: SlotEvidence): number {
  const { ledger, model, instances, nowMs } = evidence
  const { head, decodingSequences, visibleSequences } = ledger
  if (model.prefillEngines > 0 || nowMs - seenAtMs > FRESH_MS || decodingSequences === 0) return 0
  // Where no stream tells of steps, so many pages with prompts that wait beside the most must do.
  if (visibleSequences === 0) return UNBEGUN_STEPS
  if (head === undefined || head.dispatchedAtMs > seenAtMs) return 0
  // Something runs there that is not ours, and may be what is computed.
  if (instances === 1 && runningRequests > decodingSequences) return 0
  const { tokensAhead = 0, uncachedTokens } = head
  const isTold = ledger.report.limits.maxNumBatchedTokens !== undefined
  const chunk = isTold ? chunkTokens(ledger) : SMALL_CHUNK_TOKENS
  const ownSteps = 1 + (tokensAhead + uncachedTokens) / chunk
  return ledger.eventsSince(head) / visibleSequences - instances * ownSteps
}

/** A prompt there should have been done long ago, while streams went on. */
function isOverdue({ seenAtMs }: ReplicaGauges, { ledger, isBelieved }: SlotEvidence): boolean {
  const { head, visibleSequences } = ledger
  if (!isBelieved || head === undefined || !isHeadOverdue(ledger, seenAtMs)) return false
  return visibleSequences === 0 || ledger.eventsSince(head) >= UNBEGUN_STEPS * visibleSequences
}

/**
 * True when the page counts every prompt of ours without a first token as waiting, so that none has been begun, and KV
 * cache is left. It may also count those whose tokens nobody sees; more than these are somebody else's. An engine that
 * does not tell its KV cache may wait for that.
 */
function hasBegunNone(
  { waitingRequests, kvUsageRatio = 1 }: ReplicaGauges,
  { ledger, instances }: SlotEvidence,
): boolean {
  const { kvCapacityTokens = Number.POSITIVE_INFINITY } = ledger.report.limits
  const wantedRatio = (ledger.head?.offer.promptTokens ?? 0) / kvCapacityTokens
  if (kvUsageRatio + wantedRatio >= FULL_KV_RATIO) return false
  const notBegun = ledger.inFlightSequences - ledger.decodingSequences
  const unseen = ledger.decodingSequences - ledger.visibleSequences
  return waitingRequests >= notBegun && (instances > 1 || waitingRequests <= notBegun + unseen)
}
