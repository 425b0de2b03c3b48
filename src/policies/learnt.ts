/** Everything our scheduler has learnt from the stream: step models, lengths, errors, caches. Plain values. */
import type { InFlight, ReplicaLedger } from '../core/ledger.ts'
import type { SettleReport } from '../core/records.ts'
import type { Offer, PoolId, ReplicaId } from '../core/request.ts'
import { clamp, type Ms, type Ratio, type Tokens } from '../core/units.ts'
import { learnLength, type OutputLengths, outputLengths, remainingTokens } from '../estimate/output-length.ts'
import { learnError, type PredictionError, predictionError } from '../estimate/prediction-error.ts'
import { createPrefixIndex, type PrefixIndex } from '../estimate/prefix-index.ts'
import { type StepModel, type StepPrior, stepModel } from '../estimate/step-model.ts'
import {
  type StepWindows,
  stepWindows,
  windowsDispatched,
  windowsFirstToken,
  windowsProgress,
  windowsReleased,
} from '../estimate/step-windows.ts'
import { DemandPrice } from './demand-price.ts'

/** What is learnt once for replicas that are alike. */
export interface GroupLearnt {
  readonly model: StepModel
  readonly error: PredictionError
  /** Windows read of each kind, over all replicas of the group. */
  decodeWindows: number
  prefillWindows: number
}

/** Evidence before predictions may shed: first-token intervals, and first tokens compared with their prediction. */
const TRUST_PREFILL_WINDOWS = 4
const TRUST_FIRST_TOKENS = 8
/** Mean |ln(observed/predicted)| above which predictions are not believed: off by a factor of two. */
const TRUST_MAX_ABS_LOG_ERROR = 0.7
/** Share of a new answer in the learnt tokens per content event. */
const TOKENS_PER_EVENT_SHARE = 0.05
/** The most that an engine ran is forgotten by this per scrape: half of it in a minute of two scrapes a second. */
const MOST_KEEP_RATIO: Ratio = 0.994
/** So near to the most counts as the most; and so often in a row with some waiting means full. */
const FULL_RATIO: Ratio = 0.95
const TIMES_FULL = 3

interface LearntSlots {
  readonly slots: number
  readonly seenAtMs: Ms
  readonly mostRunning: number
  readonly timesFull: number
}

const NO_SLOTS: LearntSlots = {
  slots: Number.POSITIVE_INFINITY,
  seenAtMs: Number.NEGATIVE_INFINITY,
  mostRunning: 0,
  timesFull: 0,
}

export class Learnt {
  readonly #groups = new Map<string, GroupLearnt>()
  readonly #windows = new Map<ReplicaId, StepWindows>()
  readonly #lengths = new Map<string, OutputLengths>()
  /** The same by offer, so that hot paths build no keys. */
  readonly #lengthsByOffer = new WeakMap<Offer, OutputLengths>()
  readonly #tokensPerEvent = new Map<PoolId, number>()
  readonly #slots = new Map<ReplicaId, LearntSlots>()
  /** Median prediction of the engine's own part of TTFT at dispatch, by permit. */
  readonly #predictedMs = new Map<number, Ms>()
  readonly #priors: Readonly<Record<string, StepPrior>>
  readonly prefixes: PrefixIndex = createPrefixIndex()
  readonly #prices = new Map<PoolId, DemandPrice>()

  constructor(priors: Readonly<Record<string, StepPrior>>) {
    this.#priors = priors
  }

  group(groupId: string): GroupLearnt {
    let group = this.#groups.get(groupId)
    if (group === undefined) {
      group = {
        model: stepModel(this.#priors[groupId]),
        error: predictionError(),
        decodeWindows: 0,
        prefillWindows: 0,
      }
      this.#groups.set(groupId, group)
    }
    return group
  }

  /** Whether predictions of that group may shed. */
  trusted(groupId: string): boolean {
    const group = this.#groups.get(groupId)
    return (
      group !== undefined &&
      group.prefillWindows >= TRUST_PREFILL_WINDOWS &&
      group.error.samples >= TRUST_FIRST_TOKENS &&
      group.error.absLogError <= TRUST_MAX_ABS_LOG_ERROR
    )
  }

  price(pool: PoolId): DemandPrice {
    const known = this.#prices.get(pool) ?? new DemandPrice()
    this.#prices.set(pool, known)
    return known
  }

  tokensPerEvent(pool: PoolId): number {
    return this.#tokensPerEvent.get(pool) ?? 1
  }

  /** Tokens that each sequence of the offer still makes after `soFar` of them, at that quantile. */
  remaining(offer: Offer, soFar: Tokens, quantile: Ratio): Tokens {
    if (offer.kind === 'compute') return 0
    return remainingTokens(this.#lengthsOf(offer), soFar, offer, quantile)
  }

  /** Sequences that the engine runs at once: as configured, else as seen, else Infinity. */
  slots(ledger: ReplicaLedger): number {
    return (
      ledger.report.limits.maxNumSeqs ?? this.#slots.get(ledger.replicaId)?.slots ?? Number.POSITIVE_INFINITY
    )
  }

  /**
   * Takes new gauges once. Arrivals that merely wait for the running step make an engine look full too, with any
   * number running; one that is full shows the same number, its most, each time that some wait.
   */
  readGauges(ledger: ReplicaLedger): void {
    const gauges = ledger.report.gauges
    const known = this.#slots.get(ledger.replicaId) ?? NO_SLOTS
    if (gauges === undefined || known.seenAtMs === gauges.seenAtMs) return
    const { runningRequests, waitingRequests, seenAtMs } = gauges
    const mostRunning = Math.max(runningRequests, known.mostRunning * MOST_KEEP_RATIO)
    let { slots, timesFull } = known
    if (waitingRequests > 0) timesFull = runningRequests >= mostRunning * FULL_RATIO ? timesFull + 1 : 0
    if (timesFull >= TIMES_FULL) slots = Math.max(1, runningRequests, Math.min(slots, mostRunning))
    if (waitingRequests === 0 && runningRequests >= slots) slots = runningRequests + 1
    this.#slots.set(ledger.replicaId, { slots, seenAtMs, mostRunning, timesFull })
  }

  /** A permit was booked: predicts its first token, whoever sent it, so that the prediction can be judged. */
  dispatched(inFlight: InFlight, ledger: ReplicaLedger, predictedMs: Ms, nowMs: Ms): void {
    const { model } = this.group(ledger.report.groupId)
    windowsDispatched(this.#windowsOf(ledger), model, ledger, nowMs)
    this.#predictedMs.set(inFlight.permitId, predictedMs)
    this.prefixes.learn(inFlight.offer, inFlight.replicaId)
  }

  progress(ledger: ReplicaLedger, contentEvents: number, nowMs: Ms): void {
    const pool = ledger.report.pools[0]
    const tokens = contentEvents * (pool === undefined ? 1 : this.tokensPerEvent(pool))
    this.#counted(ledger, (windows, model) => windowsProgress(windows, model, ledger, tokens, nowMs))
  }

  firstToken(inFlight: InFlight, ledger: ReplicaLedger, nowMs: Ms): void {
    this.#counted(ledger, (windows, model) => windowsFirstToken(windows, model, ledger, inFlight, nowMs))
    const predictedMs = this.#predictedMs.get(inFlight.permitId)
    this.#predictedMs.delete(inFlight.permitId)
    if (predictedMs === undefined) return
    learnError(this.group(ledger.report.groupId).error, nowMs - inFlight.dispatchedAtMs, predictedMs)
  }

  /** A permit is back: learns its length when it ran to its end, and closes what was open of it. */
  released(inFlight: InFlight, ledger: ReplicaLedger, report: SettleReport | undefined, nowMs: Ms): void {
    this.#predictedMs.delete(inFlight.permitId)
    windowsReleased(this.#windowsOf(ledger), ledger, inFlight.firstTokenAtMs === undefined, nowMs)
    const { offer } = inFlight
    if (report?.outcome !== 'completed' || offer.kind === 'compute') return
    const outputTokens = report.usage?.outputTokens
    if (outputTokens === undefined) return
    learnLength(this.#lengthsOf(offer), outputTokens / offer.sequences, offer)
    if (report.contentEvents > 0) {
      const ratio = clamp(outputTokens / report.contentEvents, 0.5, 50)
      const known = this.tokensPerEvent(offer.pool)
      this.#tokensPerEvent.set(offer.pool, known + TOKENS_PER_EVENT_SHARE * (ratio - known))
    }
  }

  /** What was cached, open and learnt of this very replica is void; its group's model stays. */
  reset(replicaId: ReplicaId): void {
    this.#windows.delete(replicaId)
    this.#slots.delete(replicaId)
    this.prefixes.forget(replicaId)
  }

  /** Plain JSON of what is learnt, for people. */
  snapshot(): unknown {
    const groups = [...this.#groups].map(([groupId, group]) => ({
      groupId,
      trusted: this.trusted(groupId),
      step: stepSnapshot(group.model),
      decodeWindows: group.decodeWindows,
      prefillWindows: group.prefillWindows,
      error: { ...group.error, quantiles: { ...group.error.quantiles } },
    }))
    const slots = Object.fromEntries(
      [...this.#slots].filter(([, row]) => Number.isFinite(row.slots)).map(([id, row]) => [id, row.slots]),
    )
    return {
      groups,
      slots,
      tokensPerEvent: Object.fromEntries(this.#tokensPerEvent),
      prefixBlocks: this.prefixes.blocks,
    }
  }

  #windowsOf(ledger: ReplicaLedger): StepWindows {
    let windows = this.#windows.get(ledger.replicaId)
    if (windows === undefined) {
      windows = stepWindows()
      this.#windows.set(ledger.replicaId, windows)
    }
    return windows
  }

  #counted(ledger: ReplicaLedger, read: (windows: StepWindows, model: StepModel) => void): void {
    const windows = this.#windowsOf(ledger)
    const group = this.group(ledger.report.groupId)
    const { decodeWindows, prefillWindows } = windows
    read(windows, group.model)
    group.decodeWindows += windows.decodeWindows - decodeWindows
    group.prefillWindows += windows.prefillWindows - prefillWindows
  }

  #lengthsOf(offer: Offer): OutputLengths {
    const known = this.#lengthsByOffer.get(offer)
    if (known !== undefined) return known
    const key = `${offer.pool}\n${offer.route}\n${offer.product}\n${offer.slo.name}`
    const lengths = this.#lengths.get(key) ?? outputLengths()
    this.#lengths.set(key, lengths)
    this.#lengthsByOffer.set(offer, lengths)
    return lengths
  }
}

/** The step parameters by name, in the units of the names. */
function stepSnapshot({ estimate: { mean } }: StepModel): Record<string, number> {
  const [
    baseMs = 0,
    perSequenceMs = 0,
    per1kContextMs = 0,
    requestOverheadMs = 0,
    perChunkMs = 0,
    per1kPrefillMs = 0,
  ] = mean
  return { baseMs, perSequenceMs, per1kContextMs, requestOverheadMs, perChunkMs, per1kPrefillMs }
}
