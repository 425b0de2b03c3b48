/** A vLLM V1 engine without the GPU: its scheduler, its KV memory and the time of its steps. Pure; time is an argument. */
import type { Ms, Tokens } from '../core/units.ts'
import { EngineScheduler, type Step } from './engine-scheduler.ts'
import { Sequence } from './engine-sequence.ts'
import type {
  EngineGauges,
  EngineOptions,
  EngineRejection,
  EngineRequest,
  StepReport,
} from './engine-types.ts'
import { KvCache } from './kv-cache.ts'
import { Rng } from './rng.ts'
import { type StepWork, stepMs } from './step-time.ts'

/** Block size of vLLM on CUDA, in tokens. */
export const DEFAULT_BLOCK_TOKENS: Tokens = 16
const LARGEST_DEFAULT_MODEL_LEN: Tokens = 131_072

/** The step under way, with its end. */
interface TimedStep extends Step {
  readonly endsAtMs: Ms
}

/**
 * Requests go in with `submit`, tokens come out of `advanceTo` step by step. What is submitted becomes visible to the
 * scheduler after the profile's request overhead, and at the next step's start.
 */
export class EngineModel {
  readonly maxNumSeqs: number
  readonly maxNumBatchedTokens: Tokens
  readonly maxModelLenTokens: Tokens
  readonly kv: KvCache
  readonly #options: EngineOptions
  readonly #rng: Rng
  readonly #scheduler: EngineScheduler
  readonly #requests = new Map<string, Sequence[]>()
  /** Submitted and not yet visible to the scheduler, in order. */
  #intake: Sequence[] = []
  #step: TimedStep | undefined
  #order = 0
  #backlogTokens: Tokens = 0
  #inFlight = 0
  readonly #totals = {
    preemptions: 0,
    prompt: 0,
    generation: 0,
    prefixQuery: 0,
    prefixHit: 0,
    steps: 0,
    busyMs: 0,
  }
  #published: EngineGauges

  /** Throws a RangeError when the options contradict each other. */
  constructor(options: EngineOptions) {
    const { profile } = options
    const blockTokens = options.blockTokens ?? DEFAULT_BLOCK_TOKENS
    const kvBlocks = options.kvBlocks ?? Math.floor(profile.kvCapacityTokens / blockTokens)
    this.#options = options
    this.#rng = new Rng(options.seed ?? 1)
    this.kv = new KvCache(kvBlocks, blockTokens)
    this.maxNumSeqs = options.maxNumSeqs ?? profile.defaults.maxNumSeqs
    this.maxNumBatchedTokens =
      options.maxNumBatchedTokens ?? Math.max(profile.defaults.maxNumBatchedTokens, this.maxNumSeqs)
    this.maxModelLenTokens =
      options.maxModelLenTokens ?? Math.min(kvBlocks * blockTokens, LARGEST_DEFAULT_MODEL_LEN)
    this.#checkLimits()
    this.#scheduler = new EngineScheduler(options, this.kv, this)
    this.#published = this.#snapshot()
  }

  /** Sequences inside, whether visible to the scheduler or not. */
  get inFlightSequences(): number {
    return this.#inFlight
  }

  /** Full prompt tokens of everything without first token; what `maxNumQueuedTokens` bounds. */
  get prefillBacklogTokens(): Tokens {
    return this.#backlogTokens
  }

  /** What the engine has published of itself at the end of its last step. */
  gauges(): EngineGauges {
    return this.#published
  }

  /** Takes a request, or says why not. `advanceTo(nowMs)` must have been called before. A known id throws. */
  submit(request: EngineRequest, nowMs: Ms): EngineRejection | 'accepted' {
    this.#checkRequest(request)
    const rejection = this.wouldReject(request.promptTokens, request.outputTokens)
    if (rejection !== undefined) return rejection
    const siblings: Sequence[] = []
    for (let index = 0; index < request.outputTokens.length; index++) {
      const sequence = new Sequence(request, siblings, this.#order++, nowMs)
      siblings.push(sequence)
      this.#intake.push(sequence)
      this.#inFlight++
      this.#backlogTokens += request.promptTokens
    }
    this.#requests.set(request.id, siblings)
    return 'accepted'
  }

  /** The rejection that such a request would get now, or undefined. */
  wouldReject(promptTokens: Tokens, outputTokens: readonly Tokens[]): EngineRejection | undefined {
    const { maxNumQueuedReqs, maxNumQueuedTokens } = this.#options
    for (const output of outputTokens)
      if (promptTokens + output > this.maxModelLenTokens) return 'over_context'
    if (maxNumQueuedReqs !== undefined && this.#inFlight + outputTokens.length > maxNumQueuedReqs) {
      return 'max_num_queued_reqs'
    }
    const addedTokens = promptTokens * outputTokens.length
    const isOver = maxNumQueuedTokens !== undefined && this.#backlogTokens + addedTokens > maxNumQueuedTokens
    return isOver && this.#backlogTokens > 0 ? 'max_num_queued_tokens' : undefined
  }

  /** Takes a request out at once; the step under way still lasts as long as it was to. False when it is not inside. */
  abort(requestId: string): boolean {
    const siblings = this.#requests.get(requestId)
    if (siblings === undefined) return false
    for (const sequence of siblings) {
      if (sequence.state === 'ended') continue
      this.#end(sequence)
    }
    this.#intake = this.#intake.filter((sequence) => sequence.state !== 'ended')
    return true
  }

  /** Engine time spent so far on a request that is inside, over its sequences; 0 for others. */
  engineMsOf(requestId: string): Ms {
    let totalMs = 0
    for (const sequence of this.#requests.get(requestId) ?? []) totalMs += sequence.engineMs
    return totalMs
  }

  /** When the model next changes by itself: its step ends, or an idle engine sees a new request. */
  nextEventAtMs(): Ms | undefined {
    return this.#step?.endsAtMs ?? this.#visibleAtMs()
  }

  /** Runs all that happens up to and including `nowMs`; `onStep` sees each step as it ends and may submit and abort. */
  advanceTo(nowMs: Ms, onStep: (report: StepReport) => void): void {
    for (let atMs = this.nextEventAtMs(); atMs !== undefined && atMs <= nowMs; atMs = this.nextEventAtMs()) {
      const step = this.#step
      this.#step = undefined
      const report = step === undefined ? undefined : this.#finish(step)
      this.#admitVisible(atMs)
      this.#published = this.#snapshot()
      if (report !== undefined) onStep(report)
      this.#begin(atMs)
    }
  }

  #visibleAtMs(): Ms | undefined {
    const first = this.#intake[0]
    return first === undefined ? undefined : first.submittedAtMs + this.#options.profile.requestOverheadMs
  }

  #admitVisible(nowMs: Ms): void {
    let visible = 0
    const latestAtMs = nowMs - this.#options.profile.requestOverheadMs
    for (const sequence of this.#intake) {
      if (sequence.submittedAtMs > latestAtMs + 1e-9) break
      this.#scheduler.enqueue(sequence)
      visible++
    }
    if (visible > 0) this.#intake.splice(0, visible)
  }

  #begin(nowMs: Ms): void {
    const step = this.#scheduler.compose(nowMs)
    if (step === undefined) return
    const durationMs = this.#durationMs(step)
    this.#totals.steps++
    this.#totals.busyMs += durationMs
    this.#step = { ...step, endsAtMs: nowMs + durationMs }
  }

  #durationMs(step: Step): Ms {
    let prefillContextTokens = 0
    let decodeContextTokens = 0
    for (const sequence of step.items) {
      const { computedTokens, scheduledTokens } = sequence
      if (sequence.decodes) decodeContextTokens += computedTokens + 1
      else prefillContextTokens += scheduledTokens * (computedTokens + scheduledTokens / 2)
    }
    const work: StepWork = {
      prefillTokens: step.prefillTokens,
      prefillContextTokens,
      decodeSequences: step.decodeTokens,
      decodeContextTokens,
    }
    const { profile, jitterRatio = 0, speedRatio = 1 } = this.#options
    const jitter = jitterRatio === 0 ? 1 : this.#rng.logNormal(1, jitterRatio)
    return (stepMs(profile, work) * jitter) / speedRatio
  }

  #finish(step: TimedStep): StepReport {
    const emitted: Sequence[] = []
    const finished: Sequence[] = []
    const msPerToken = (step.endsAtMs - step.startedAtMs) / (step.prefillTokens + step.decodeTokens)
    for (const sequence of step.items) {
      if (sequence.state === 'ended') continue
      sequence.engineMs += msPerToken * sequence.scheduledTokens
      sequence.computedTokens += sequence.scheduledTokens
      sequence.scheduledTokens = 0
      if (sequence.pendingTokens > 0) continue
      this.#emit(sequence, step.endsAtMs)
      emitted.push(sequence)
      if (sequence.generatedTokens >= sequence.outputTokens) finished.push(sequence)
    }
    for (const sequence of finished) this.#end(sequence)
    const { startedAtMs, endsAtMs, prefillTokens, decodeTokens, preempted } = step
    return { startedAtMs, endedAtMs: endsAtMs, prefillTokens, decodeTokens, emitted, finished, preempted }
  }

  #emit(sequence: Sequence, nowMs: Ms): void {
    sequence.generatedTokens++
    this.#totals.generation++
    if (sequence.generatedTokens > 1) return
    sequence.firstTokenAtMs = nowMs
    this.#totals.prompt += sequence.promptTokens
    this.#backlogTokens -= sequence.promptTokens
  }

  #end(sequence: Sequence): void {
    if (sequence.generatedTokens === 0) this.#backlogTokens -= sequence.promptTokens
    this.#scheduler.remove(sequence)
    sequence.state = 'ended'
    this.#inFlight--
    if (sequence.unfinishedSiblings === 0) this.#requests.delete(sequence.requestId)
  }

  #snapshot(): EngineGauges {
    const scheduler = this.#scheduler
    const totals = this.#totals
    return {
      runningSequences: scheduler.runningSequences,
      waitingSequences: scheduler.waitingSequences,
      kvUsageRatio: this.kv.usageRatio,
      preemptionsTotal: scheduler.totals.preemptions,
      promptTokensTotal: totals.prompt,
      generationTokensTotal: totals.generation,
      prefixQueryTokensTotal: scheduler.totals.prefixQueryTokens,
      prefixHitTokensTotal: scheduler.totals.prefixHitTokens,
      stepsTotal: totals.steps,
      busyMsTotal: totals.busyMs,
    }
  }

  #checkLimits(): void {
    const kvTokens = this.kv.totalBlocks * this.kv.blockTokens
    if (this.maxNumBatchedTokens < this.maxNumSeqs) {
      throw new RangeError(
        `maxNumBatchedTokens (${this.maxNumBatchedTokens}) must be at least maxNumSeqs (${this.maxNumSeqs}), or decodes starve`,
      )
    }
    if (this.maxNumSeqs < 1) throw new RangeError(`maxNumSeqs must be at least 1, got ${this.maxNumSeqs}`)
    if (this.maxModelLenTokens > kvTokens) {
      throw new RangeError(
        `maxModelLenTokens (${this.maxModelLenTokens}) must fit into the KV cache of ${kvTokens} tokens`,
      )
    }
  }

  #checkRequest(request: EngineRequest): void {
    if (this.#requests.has(request.id)) throw new RangeError(`request ${request.id} is inside already`)
    const extentTokens = request.prefixExtentTokens ?? this.kv.blockTokens
    const isWhole = request.promptTokens >= 1 && request.outputTokens.length > 0
    if (!isWhole || request.outputTokens.some((tokens) => tokens < 1)) {
      throw new RangeError(
        `request ${request.id} needs at least one prompt token, one sequence and one output token`,
      )
    }
    if (extentTokens % this.kv.blockTokens !== 0) {
      throw new RangeError(
        `prefixExtentTokens must be a multiple of ${this.kv.blockTokens}, got ${extentTokens}`,
      )
    }
  }
}
