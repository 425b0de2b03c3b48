/** Everything our scheduler has learnt from the stream: step models, lengths, errors, caches. Plain values. */
import type { PermitId } from '../core/events.ts'
import type { InFlight, ReplicaLedger } from '../core/ledger.ts'
import { PassingMap } from '../core/passing-map.ts'
import type { SettleReport } from '../core/records.ts'
import type { Offer, PoolId, ReplicaId } from '../core/request.ts'
import type { TrustState } from '../core/scheduler.ts'
import { clamp, type Ms, type Ratio, type Tokens } from '../core/units.ts'
import type { Sent } from '../estimate/cache-belief.ts'
import { EngineGroup } from '../estimate/engine-group.ts'
import {
  learnCutOff,
  learnLength,
  type OutputLengths,
  outputLengths,
  remainingTokens,
} from '../estimate/output-length.ts'
import { createPrefixIndex, type PrefixIndex } from '../estimate/prefix-index.ts'
import type { StepPrior } from '../estimate/step-model.ts'
import { DemandPrice } from './demand-price.ts'
import { PoolFairness } from './fairness/pool-fairness.ts'

/** Quantile of an answer's length that its tenant is charged for before it has ended. */
const CHARGED_LENGTH_QUANTILE: Ratio = 0.5
/** Weight kept of the past at each answer in the tokens per content event: about the last 50 answers count. */
const CONTENT_KEEP_RATIO: Ratio = 0.98
/** Each event is taken for a token until so many have come, and within these bounds ever after. */
const FIRST_CONTENT: Content = { tokens: 50, events: 50 }
const MIN_TOKENS_PER_EVENT = 0.5
const MAX_TOKENS_PER_EVENT = 50
/** What answers brought lately, fading. */
interface Content {
  readonly tokens: Tokens
  readonly events: number
}

export class Learnt {
  readonly #groups = new Map<string, EngineGroup>()
  readonly #lengths = new Map<string, OutputLengths>()
  /** The same by offer, so that hot paths build no keys. */
  readonly #lengthsByOffer = new WeakMap<Offer, OutputLengths>()
  readonly #contents = new Map<PoolId, Content>()
  /** How the prefix index has counted a permit's prompt in. */
  readonly #sent = new PassingMap<PermitId, Sent>()
  readonly #priors: Readonly<Record<string, StepPrior>>
  #learntAtMs: Ms = 0
  /** What plans keep beside it: see `keptBy`. */
  readonly kept: WeakMap<object, unknown>[] = []
  readonly prefixes: PrefixIndex = createPrefixIndex()
  readonly #prices = new Map<PoolId, DemandPrice>()
  readonly #fairness = new Map<PoolId, PoolFairness>()

  constructor(priors: Readonly<Record<string, StepPrior>>) {
    this.#priors = priors
  }

  group(groupId: string): EngineGroup {
    let group = this.#groups.get(groupId)
    if (group === undefined) {
      group = new EngineGroup(this.#priors[groupId])
      this.#groups.set(groupId, group)
    }
    return group
  }

  /** That of a replica, with the shape that its report tells. */
  groupOf({ report }: ReplicaLedger): EngineGroup {
    return this.group(report.groupId).shapedAs(report.limits.prefillEngines)
  }

  /** How far predictions of that group are believed, by default at the last instant that anything was learnt. */
  trust(groupId: string, nowMs: Ms = this.#learntAtMs): TrustState {
    return this.group(groupId).trust(nowMs)
  }

  price(pool: PoolId): DemandPrice {
    const known = this.#prices.get(pool) ?? new DemandPrice()
    this.#prices.set(pool, known)
    return known
  }

  fairness(pool: PoolId): PoolFairness {
    const known = this.#fairness.get(pool) ?? new PoolFairness()
    this.#fairness.set(pool, known)
    return known
  }

  /** Of all of its content together: of a short answer the end token, which has no event, is half. */
  tokensPerEvent(pool: PoolId): number {
    const content = this.#contents.get(pool)
    return content === undefined ? 1 : tokensPerEventOf(content)
  }

  /** Tokens that each sequence of the offer still makes after `soFar` of them, at that quantile. */
  remaining(offer: Offer, soFar: Tokens, quantile: Ratio): Tokens {
    if (offer.kind !== 'generate') return 0
    return remainingTokens(this.lengthsOf(offer), soFar, offer, quantile)
  }

  /** Sequences that the engine runs at once: as configured, else as seen of it or of its like, else Infinity. */
  slots(ledger: ReplicaLedger): number {
    return ledger.report.limits.maxNumSeqs ?? this.groupOf(ledger).slots.of(ledger.replicaId)
  }

  /** Learns slots from new gauges, once. `instances` gates share the engine. */
  readGauges(ledger: ReplicaLedger, instances: number, nowMs: Ms): void {
    const { replicaId, report } = ledger
    const { gauges, limits } = report
    if (gauges === undefined || limits.maxNumSeqs !== undefined) return
    const group = this.groupOf(ledger)
    if (!group.slots.isNew(replicaId, gauges)) return
    const isBelieved = group.trust(gauges.seenAtMs) !== 'fallback'
    const model = group.modelOf(replicaId)
    group.slots.read(gauges, { ledger, model, isBelieved, instances, nowMs })
  }

  /** A permit was booked, whoever sent it. */
  dispatched(inFlight: InFlight, ledger: ReplicaLedger, nowMs: Ms): void {
    const { offer, replicaId, permitId } = inFlight
    this.#learntAtMs = nowMs
    this.groupOf(ledger).dispatched(inFlight, ledger, nowMs)
    const outputTokens = offer.sequences * this.remaining(offer, 0, CHARGED_LENGTH_QUANTILE)
    this.fairness(offer.pool).dispatched(inFlight, outputTokens, nowMs)
    const { kvCapacityTokens } = ledger.report.limits
    this.#sent.set(permitId, this.prefixes.learn(offer, replicaId, kvCapacityTokens))
  }

  progress(ledger: ReplicaLedger, contentEvents: number, nowMs: Ms): void {
    const pool = ledger.report.pools[0]
    const tokens = contentEvents * (pool === undefined ? 1 : this.tokensPerEvent(pool))
    this.groupOf(ledger).progress(ledger, tokens, nowMs)
  }

  /** `instances` gates share the engine's slots evenly. */
  firstToken(inFlight: InFlight, ledger: ReplicaLedger, nowMs: Ms, instances = 1): void {
    this.groupOf(ledger).firstToken(inFlight, ledger, this.slots(ledger) / instances, nowMs)
    const sent = this.#sent.get(inFlight.permitId)
    if (sent !== undefined) this.prefixes.begun(sent)
  }

  /** A permit is back: learns its length and what was cached of it, and closes what was open of it. */
  released(inFlight: InFlight, ledger: ReplicaLedger, report: SettleReport | undefined, nowMs: Ms): void {
    this.#learntAtMs = nowMs
    this.groupOf(ledger).released(inFlight, ledger, report, nowMs)
    this.#learnReuse(inFlight, report)
    const outputTokens = report === undefined ? undefined : this.#outputOf(inFlight, report)
    this.fairness(inFlight.offer.pool).released(inFlight, outputTokens, nowMs)
    if (report === undefined || inFlight.offer.kind !== 'generate') return
    this.#learnOutput(inFlight, report)
  }

  #learnReuse({ permitId, offer }: InFlight, report: SettleReport | undefined): void {
    const sent = this.#sent.get(permitId)
    if (sent === undefined) return
    this.#sent.delete(permitId)
    this.prefixes.begun(sent)
    if (wasRefused(report)) this.prefixes.undo(offer, sent)
    const { cachedTokens, promptTokens } = report?.usage ?? {}
    if (cachedTokens === undefined || offer.kind !== 'generate') return
    // Ours are estimates, the engine's are exact: what is compared is the share of the prompt.
    const scale = promptTokens === undefined || !(promptTokens > 0) ? 1 : offer.promptTokens / promptTokens
    this.prefixes.correct(sent, cachedTokens * scale)
  }

  /** Tokens that it made over all its sequences, as the engine says, else as counted. */
  #outputOf({ offer }: InFlight, { usage, contentEvents }: SettleReport): Tokens {
    return usage?.outputTokens ?? contentEvents * this.tokensPerEvent(offer.pool)
  }

  #learnOutput(inFlight: InFlight, report: SettleReport): void {
    const { offer, replicaId } = inFlight
    const { outcome, usage, contentEvents } = report
    const outputTokens = this.#outputOf(inFlight, report)
    this.prefixes.generated(replicaId, outputTokens)
    if (outcome !== 'completed') {
      if (outcome !== 'client_error')
        learnCutOff(this.lengthsOf(offer), outputTokens / offer.sequences, offer)
      return
    }
    if (usage?.outputTokens === undefined) return
    learnLength(this.lengthsOf(offer), outputTokens / offer.sequences, offer)
    if (contentEvents === 0) return
    const { tokens, events } = this.#contents.get(offer.pool) ?? FIRST_CONTENT
    this.#contents.set(offer.pool, {
      tokens: CONTENT_KEEP_RATIO * tokens + outputTokens,
      events: CONTENT_KEEP_RATIO * events + contentEvents,
    })
  }

  /** What was cached, open and learnt of this very replica is void; its group's model stays. */
  reset(replicaId: ReplicaId): void {
    for (const group of this.#groups.values()) group.forget(replicaId)
    this.prefixes.forget(replicaId)
  }

  /** Plain JSON of what is learnt, for people. */
  snapshot(): unknown {
    const nowMs = this.#learntAtMs
    const groups = [...this.#groups].map(([groupId, group]) => ({ groupId, ...group.snapshot(nowMs) }))
    return {
      groups,
      slots: Object.assign({}, ...[...this.#groups.values()].map(({ slots }) => slots.snapshot())),
      fairness: Object.fromEntries([...this.#fairness].map(([id, pool]) => [id, pool.snapshot(nowMs)])),
      tokensPerEvent: Object.fromEntries(
        [...this.#contents].map(([pool, content]) => [pool, tokensPerEventOf(content)]),
      ),
      prefixBlocks: this.prefixes.blocks,
      caches: this.prefixes.snapshot(),
    }
  }

  /** Where the lengths of answers like this one are learnt; the same object always. */
  lengthsOf(offer: Offer): OutputLengths {
    const known = this.#lengthsByOffer.get(offer)
    if (known !== undefined) return known
    const key = `${offer.pool}\n${offer.route}\n${offer.product}\n${offer.slo.name}`
    const lengths = this.#lengths.get(key) ?? outputLengths()
    this.#lengths.set(key, lengths)
    this.#lengthsByOffer.set(offer, lengths)
    return lengths
  }
}

/** It bounced, or ended in an error before its first token: its prompt was not computed. */
function wasRefused(report: SettleReport | undefined): boolean {
  if (report === undefined) return true
  const { outcome, firstTokenAtMs } = report
  return firstTokenAtMs === undefined && (outcome === 'client_error' || outcome === 'upstream_failed')
}

function tokensPerEventOf({ tokens, events }: Content): number {
  return clamp(tokens / events, MIN_TOKENS_PER_EVENT, MAX_TOKENS_PER_EVENT)
}
