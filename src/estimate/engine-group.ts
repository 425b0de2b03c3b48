/** Everything learnt once for replicas that are alike: step model, pace of each, calibration, and trust in all that. */
import type { PermitId } from '../core/events.ts'
import { type InFlight, pairsOf, type ReplicaLedger } from '../core/ledger.ts'
import { PassingMap } from '../core/passing-map.ts'
import type { SettleReport } from '../core/records.ts'
import type { ReplicaId } from '../core/request.ts'
import type { TrustState } from '../core/scheduler.ts'
import type { Ms, Tokens } from '../core/units.ts'
import { GroupSlots } from './batch-slots.ts'
import { type Calibration, calibration, factor, type Level, learnError, restart } from './calibration.ts'
import { unsettle } from './kalman.ts'
import { forgetPace, type GroupPace, groupPace, learnPace, slownessOf } from './replica-pace.ts'
import {
  decodeStepMs,
  perMillionPairsMs,
  type StepModel,
  type StepPrior,
  type StepResidual,
  sharedModel,
  stepModel,
} from './step-model.ts'
import {
  type StepWindows,
  stepWindows,
  type WindowKind,
  type WindowReader,
  windowsDispatched,
  windowsFirstToken,
  windowsProgress,
  windowsReleased,
} from './step-windows.ts'
import { compare, type Said, said, type TrackRecord, trackRecord } from './track-record.ts'
import { COLD, nextTrust, type Trust, wornTrust } from './trust.ts'
import { loadClass, loadOf, promptClass, rawTtftMs } from './ttft.ts'

/** What was predicted for a permit when it was dispatched. */
interface Prediction extends Said {
  readonly rawTtftMs: Ms
  readonly loadClass: number
  /** Sequences in flight there before it. */
  readonly sequencesBefore: number
  readonly rawTpotMs: Ms
}

interface Member extends WindowReader {
  readonly windows: StepWindows
  /** The version of the group's pace that its slowness was read at. */
  paceVersion: number
}

/** Shorter answers say nothing about the time per token, in tokens. */
const MIN_TPOT_TOKENS: Tokens = 8
/** TPOT is calibrated over all loads together: a stream lives through many. */
const ANY_LOAD = 0

export class EngineGroup {
  readonly #prior: StepPrior | undefined
  #model: StepModel
  readonly ttft: Calibration = calibration()
  readonly tpot: Calibration = calibration()
  slots = new GroupSlots()
  readonly #pace: GroupPace = groupPace()
  readonly #members = new Map<ReplicaId, Member>()
  readonly #predictions = new PassingMap<PermitId, Prediction>()
  readonly #windows: Record<WindowKind, number> = { decode: 0, prefill: 0 }
  #record: TrackRecord = trackRecord()
  #trust: Trust = COLD
  #comparedAtMs: Ms = Number.NEGATIVE_INFINITY
  #changes = 0

  constructor(prior?: StepPrior) {
    this.#prior = prior
    this.#model = stepModel(prior)
  }

  /** The model that its replicas share. */
  get model(): StepModel {
    return this.#model
  }

  /** Told whether others make the answers than `prefillEngines` that compute prompts; engines that change that are new. */
  shapedAs(prefillEngines = 0): this {
    if (prefillEngines === this.#model.prefillEngines) return this
    this.#model = stepModel(this.#prior, prefillEngines)
    this.#members.clear()
    this.slots = new GroupSlots()
    return this
  }

  /** The model as that replica runs it. */
  modelOf(replicaId: ReplicaId): StepModel {
    return this.#memberOf(replicaId).model
  }

  trust(nowMs: Ms): TrustState {
    return wornTrust(this.#trust, nowMs - this.#comparedAtMs)
  }

  /** What a raw TTFT must be multiplied by to hold at that level. */
  ttftFactor(loadClass: number, level: Level, nowMs: Ms): number {
    return factor(this.ttft, loadClass, level, nowMs)
  }

  /** To be called after a permit was booked: predicts its first token, whoever sent it, so that it can be judged. */
  dispatched(inFlight: InFlight, ledger: ReplicaLedger, nowMs: Ms): void {
    const { uncachedTokens, offer, permitId, replicaId } = inFlight
    const member = this.#memberOf(replicaId)
    const { model } = member
    windowsDispatched(member.windows, member, ledger, inFlight, nowMs)
    if (offer.kind !== 'generate') return
    const whole = loadOf(model, ledger, nowMs)
    const pairs = pairsOf(inFlight)
    const load = {
      ...whole,
      backlogTokens: Math.max(0, whole.backlogTokens - uncachedTokens),
      backlogPairs: Math.max(0, whole.backlogPairs - pairs),
    }
    const own = loadClass(load, promptClass(uncachedTokens))
    const rawMs = rawTtftMs(model, load, uncachedTokens, pairs)
    const medianMs = rawMs * this.ttftFactor(own, 'p50', nowMs)
    this.#predictions.set(permitId, {
      rawTtftMs: rawMs,
      loadClass: own,
      sequencesBefore: ledger.inFlightSequences - offer.sequences,
      rawTpotMs: decodeStepMs(model, ledger.inFlightSequences, ledger.contextTokens),
      ...said(offer, medianMs, rawMs * this.ttftFactor(own, 'p80', nowMs), nowMs),
    })
  }

  /** To be called after `tokens` were booked over all streams of a replica. */
  progress(ledger: ReplicaLedger, tokens: Tokens, nowMs: Ms): void {
    const member = this.#memberOf(ledger.replicaId)
    windowsProgress(member.windows, member, ledger, tokens, nowMs)
  }

  /**
   * To be called before a first token is booked. Who was sent beyond the engine's `slots`, as far as they are known by
   * now, has waited for an answer to end, of which no prediction knows: it proves none wrong, and lets none wear out.
   */
  firstToken(inFlight: InFlight, ledger: ReplicaLedger, slots: number, nowMs: Ms): void {
    const member = this.#memberOf(ledger.replicaId)
    windowsFirstToken(member.windows, member, ledger, inFlight, nowMs)
    const prediction = this.#predictions.get(inFlight.permitId)
    if (prediction === undefined) return
    this.#comparedAtMs = nowMs
    if (prediction.sequencesBefore >= slots) return
    const tookMs = nowMs - inFlight.dispatchedAtMs
    learnError(this.ttft, prediction.loadClass, tookMs, prediction.rawTtftMs, nowMs)
    compare(this.#record, prediction, tookMs)
    this.#judge()
  }

  /** To be called after a permit was given back. */
  released(inFlight: InFlight, ledger: ReplicaLedger, report: SettleReport | undefined, nowMs: Ms): void {
    const completed = report?.outcome === 'completed'
    windowsReleased(this.#memberOf(inFlight.replicaId).windows, ledger, inFlight, completed, nowMs)
    const prediction = this.#predictions.get(inFlight.permitId)
    this.#predictions.delete(inFlight.permitId)
    const tpotMs = report === undefined ? undefined : observedTpotMs(inFlight, report)
    if (prediction !== undefined && tpotMs !== undefined)
      learnError(this.tpot, ANY_LOAD, tpotMs, prediction.rawTpotMs, nowMs)
  }

  /** The replica restarted or went away: what is open there and how it differed is void; the model stays. */
  forget(replicaId: ReplicaId): void {
    this.#members.delete(replicaId)
    this.slots.forget(replicaId)
    forgetPace(this.#pace, replicaId)
  }

  /** Plain JSON, for people. */
  snapshot(nowMs: Ms): object {
    const [baseMs, perSequenceMs, per1kContextMs, requestOverheadMs, perChunkMs, per1kPrefillMs] =
      this.model.estimate.mean
    const factors = (errors: Calibration) =>
      Object.fromEntries(
        (['p50', 'p80', 'p95'] as const).map((level) => [level, factor(errors, -1, level, nowMs)]),
      )
    return {
      trust: this.trust(nowMs),
      evidence: { prefillWindows: this.#windows.prefill, ...this.#record },
      step: {
        baseMs,
        perSequenceMs,
        per1kContextMs,
        requestOverheadMs,
        perChunkMs,
        per1kPrefillMs,
        per1mPairsMs: perMillionPairsMs(this.model),
      },
      decodeWindows: this.#windows.decode,
      changes: this.#changes,
      ttftFactors: factors(this.ttft),
      tpotFactors: factors(this.tpot),
      slowness: Object.fromEntries([...this.#members.keys()].map((id) => [id, slownessOf(this.#pace, id)])),
    }
  }

  #judge(): void {
    const before = this.#trust.state
    this.#trust = nextTrust(this.#trust, { prefillWindows: this.#windows.prefill, ...this.#record })
    // A second chance is earned by what comes now.
    if (before !== 'fallback' && this.#trust.state === 'fallback') this.#record = trackRecord()
  }

  /** The replica with its slowness of now. */
  #memberOf(replicaId: ReplicaId): Member {
    const member = this.#members.get(replicaId) ?? this.#newMember(replicaId)
    if (member.paceVersion !== this.#pace.version) {
      member.paceVersion = this.#pace.version
      member.model.slownessRatio = slownessOf(this.#pace, replicaId)
    }
    return member
  }

  #newMember(replicaId: ReplicaId): Member {
    const heard = (kind: WindowKind, residual: StepResidual | undefined): void => {
      if (residual === undefined) return
      this.#windows[kind]++
      if (learnPace(this.#pace, replicaId, residual) === 'group') this.#unlearn()
    }
    const member = { windows: stepWindows(), model: sharedModel(this.model), heard, paceVersion: -1 }
    this.#members.set(replicaId, member)
    return member
  }

  /** The engines are not what was learnt any more (other arguments, another GPU): believe the next observations. */
  #unlearn(): void {
    this.#changes++
    unsettle(this.model.estimate)
    restart(this.ttft)
    restart(this.tpot)
    this.#record = trackRecord()
    this.#judge()
  }
}

/** TPOT as the verdict has it; undefined where it says nothing about the engine. */
function observedTpotMs({ offer }: InFlight, report: SettleReport): Ms | undefined {
  const { firstTokenAtMs, lastTokenAtMs, usage, outcome, slowReader } = report
  if (outcome !== 'completed' || slowReader === true || !offer.streamed) return undefined
  if (firstTokenAtMs === undefined || lastTokenAtMs === undefined) return undefined
  const tokens = (usage?.outputTokens ?? 0) / offer.sequences
  return tokens < MIN_TPOT_TOKENS ? undefined : (lastTokenAtMs - firstTokenAtMs) / (tokens - 1)
}
