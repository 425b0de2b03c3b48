/** How many sequences an engine runs at once, learnt from the pages of one that does not tell. Plain values. */
import type { ReplicaLedger } from '../core/ledger.ts'
import type { ReplicaGauges } from '../core/replica.ts'
import type { ReplicaId } from '../core/request.ts'
import type { Ms, Ratio } from '../core/units.ts'
import type { StepModel } from './step-model.ts'
import { chunkTokens } from './step-windows.ts'
import { isHeadOverdue } from './ttft.ts'

/** The most that an engine ran is forgotten by this per page: half of it in a minute of two pages a second. */
const MOST_KEEP_RATIO: Ratio = 0.994
/** So near to the most counts as the most. */
const FULL_RATIO: Ratio = 0.95
/** From this many on one fewer also counts: of a full batch one has often just ended. */
const SMALL_BATCH = 8
/**
 * A prompt that waits for the running step is begun after one; so many say that it waits for something else. So many
 * over several pages are enough to call the engine full.
 */
const LYING_STEPS = 3
const FULL_STEPS = 6
/** From here on it may be the KV cache that prompts wait for. */
const FULL_KV_RATIO: Ratio = 0.95
/** A page that counts more than so many times what is ours there, and so many on top, is not about ours, or lies. */
const OURS_FACTOR = 2
const OURS_MORE = 4

/** What the pages of one engine have shown. */
interface BatchSlots {
  readonly slots: number
  readonly seenAtMs: Ms
  readonly mostRunning: number
  /** Steps that prompts were seen to lie while it ran its most. */
  readonly lyingSteps: number
  /** Pages in a row on which it ran more than it was believed to. */
  readonly timesMore: number
}

const NOTHING_SEEN: BatchSlots = {
  slots: Number.POSITIVE_INFINITY,
  seenAtMs: Number.NEGATIVE_INFINITY,
  mostRunning: 0,
  lyingSteps: 0,
  timesMore: 0,
}

/** What a page is held against. */
export interface SlotEvidence {
  readonly ledger: ReplicaLedger
  readonly model: StepModel
  /** Predictions are believed, so that a prompt can be overdue. */
  readonly isBelieved: boolean
  /** Gates that share the engine. */
  readonly instances: number
}

/** The slots of engines that are alike. One of which nothing is known yet is taken for as large as the largest. */
export class GroupSlots {
  readonly #seen = new Map<ReplicaId, BatchSlots>()
  #largest = Number.POSITIVE_INFINITY

  /** Sequences that it is believed to run at once; Infinity while nobody knows of any of them. */
  of(replicaId: ReplicaId): number {
    const slots = this.#seen.get(replicaId)?.slots ?? Number.POSITIVE_INFINITY
    return Number.isFinite(slots) ? slots : this.#largest
  }

  /** Takes new gauges once. */
  read(evidence: SlotEvidence): void {
    const { report, replicaId } = evidence.ledger
    const { gauges } = report
    const seen = this.#seen.get(replicaId) ?? NOTHING_SEEN
    if (gauges === undefined || gauges.seenAtMs === seen.seenAtMs) return
    this.#seen.set(replicaId, learnSlots({ ...seen, slots: this.of(replicaId) }, gauges, evidence))
    this.#compare()
  }

  /** It restarted or went away. What is known of the others, and last was of the last, holds for whoever comes. */
  forget(replicaId: ReplicaId): void {
    this.#seen.delete(replicaId)
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
    if (isKnown) this.#largest = Math.ceil(largest)
  }
}

/**
 * What is believed after a page. An engine that is full shows the same number running, its most, each time that it lets
 * prompts lie; one that lets a prompt lie that it should have done long ago is full beyond doubt. Arrivals that merely
 * wait for the running step make any engine look full, with any number running.
 */
function learnSlots(known: BatchSlots, gauges: ReplicaGauges, evidence: SlotEvidence): BatchSlots {
  const { runningRequests: running, waitingRequests: waiting, seenAtMs } = gauges
  const ours = evidence.ledger.inFlightSequences * evidence.instances
  if (running + waiting > OURS_FACTOR * ours + OURS_MORE) return { ...known, seenAtMs }
  const mostRunning = Math.max(running, known.mostRunning * MOST_KEEP_RATIO)
  const isMore = running > known.slots || (waiting === 0 && running >= known.slots)
  const lyingSteps = isMore ? 0 : lyingStepsAfter(known.lyingSteps, mostRunning, gauges, evidence)
  const timesMore = isMore ? known.timesMore + 1 : 0
  let { slots } = known
  if (isMore) slots = Math.min(running + 2 ** (timesMore - 1), 2 * slots)
  else if (lyingSteps >= FULL_STEPS) slots = Math.max(1, running, Math.min(slots, Math.ceil(mostRunning)))
  return { slots, seenAtMs, mostRunning, lyingSteps, timesMore }
}

function lyingStepsAfter(
  before: number,
  mostRunning: number,
  gauges: ReplicaGauges,
  evidence: SlotEvidence,
): number {
  const { runningRequests, waitingRequests } = gauges
  if (isOverdue(gauges, evidence)) return FULL_STEPS
  if (waitingRequests === 0) return before
  const steps = lyingStepsOn(gauges, evidence)
  if (isNearMost(runningRequests, mostRunning)) return steps >= LYING_STEPS ? before + steps : before
  // Where steps can be told, prompts lie while one is refilled too.
  return evidence.isBelieved && steps >= LYING_STEPS ? before : 0
}

function isNearMost(running: number, mostRunning: number): boolean {
  const oneEnded = mostRunning >= SMALL_BATCH ? mostRunning - 1 : mostRunning
  return running >= Math.min(mostRunning * FULL_RATIO, oneEnded)
}

/**
 * Steps of the streams there in which the first prompt was not begun, although all that was before it had been, while all
 * that has not begun waited. A prompt ahead takes the steps of its chunks, and one more where it begins within a chunk.
 */
function lyingStepsOn(gauges: ReplicaGauges, evidence: SlotEvidence): number {
  const { ledger, model } = evidence
  const { head } = ledger
  if (head === undefined || model.prefillEngines > 0 || !hasBegunNone(gauges, evidence)) return 0
  const steps = ledger.eventsSince(head) / Math.max(1, ledger.visibleSequences)
  const { promptsAhead = 0, tokensAhead = 0, uncachedTokens } = head
  return steps - promptsAhead - 1 - (tokensAhead + uncachedTokens) / chunkTokens(ledger)
}

/** A prompt there is overdue and the page says why: it counts as waiting, and so does all that came after it. */
function isOverdue(gauges: ReplicaGauges, evidence: SlotEvidence): boolean {
  if (!evidence.isBelieved || !hasBegunNone(gauges, evidence)) return false
  return isHeadOverdue(evidence.ledger, gauges.seenAtMs)
}

/** Of ours, and not for want of KV cache. A page that counts others beside says nothing of ours. */
function hasBegunNone(
  { waitingRequests, kvUsageRatio = 0 }: ReplicaGauges,
  { ledger, instances }: SlotEvidence,
): boolean {
  if (kvUsageRatio >= FULL_KV_RATIO) return false
  const notBegun = ledger.inFlightSequences - ledger.decodingSequences
  return instances > 1 ? waitingRequests >= notBegun : waitingRequests === notBegun
}
