/** A vLLM V1 engine without the GPU: its scheduler, its KV memory and the time of its steps. Pure; time is an argument. */
import type { Ms, Ratio, Tokens } from '../core/units.ts'
import { type ResolvedLimits, resolveLimits } from './engine-limits.ts'
import { EngineScheduler, type Step } from './engine-scheduler.ts'
import { Sequence } from './engine-sequence.ts'
import type {
  EngineGauges,
  EngineOptions,
  EngineRejection,
  EngineRequest,
  SimEngine,
  StepReport,
} from './engine-types.ts'
import { KvCache } from './kv-cache.ts'
import { Rng } from './rng.ts'
import { type StepWork, stepMs } from './step-time.ts'

/** The step under way, with its end. */
interface TimedStep extends Step {
  readonly endsAtMs: Ms
}

/**
 * Requests go in with `submit`, tokens come out of `advanceTo` step by step. What is submitted becomes visible to the
 * scheduler after the profile's request overhead, and at the next step's start.
 */
export class EngineModel implements SimEngine {
  readonly limits: ResolvedLimits
  readonly kv: KvCache
  readonly #options: EngineOptions
  readonly #rng: Rng
  readonly #guesses: Rng
  readonly #scheduler: EngineScheduler
  readonly #requests = new Map<string, Sequence[]>()
  /** Submitted and not yet visible to the scheduler, in order. */
  #intake: Sequence[] = []
  #step: TimedStep | undefined
  #order = 0
  #speedRatio: Ratio
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
    this.#options = options
    this.#speedRatio = options.speedRatio ?? 1
    const rng = new Rng(options.seed ?? 1)
    this.#guesses = rng.fork('guesses')
    this.#rng = rng
    this.limits = resolveLimits(options)
    this.kv = new KvCache(this.limits.kvBlocks, this.limits.blockTokens)
    this.#scheduler = new EngineScheduler(options, this.kv, this.limits)
    this.#published = this.#snapshot()
  }

  get maxModelLenTokens(): Tokens {
    return this.limits.maxModelLenTokens
  }

  /** Steps that begin from now on run that many times as fast as the profile says. */
  setSpeed(ratio: Ratio): void {
    this.#speedRatio = ratio
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
      if (promptTokens + output > this.limits.maxModelLenTokens) return 'over_context'
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
      // The next step was composed when this one began, if that is how the engine works.
      this.#admitVisible(this.#options.asyncScheduling ? (step?.startedAtMs ?? atMs) : atMs)
      this.#published = this.#snapshot()
      if (report !== undefined) onStep(report)
      this.#begin(atMs)
      if (this.#step !== undefined) continue
      this.#admitVisible(atMs)
      this.#begin(atMs)
    }
  }

  #visibleAtMs(): Ms | undefined {
    const first = this.#intake[0]
    return first === undefined ? undefined : first.submittedAtMs + this.#options.profile.requestOverheadMs
  }

  #admitVisible(untilMs: Ms): void {
    let visible = 0
    const latestAtMs = untilMs - this.#options.profile.requestOverheadMs
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
    const { profile, jitterRatio = 0 } = this.#options
    const jitter = jitterRatio === 0 ? 1 : this.#rng.logNormal(1, jitterRatio)
    return (stepMs(profile, this.#workOf(step)) * jitter) / this.#speedRatio
  }

  #workOf(step: Step): StepWork {
    let prefillContextTokens = 0
    let decodeContextTokens = 0
    let decodeSequences = 0
    for (const sequence of step.items) {
      const { computedTokens, scheduledTokens } = sequence
      if (sequence.decodes) {
        decodeSequences++
        decodeContextTokens += computedTokens + 1
      } else prefillContextTokens += scheduledTokens * (computedTokens + scheduledTokens / 2)
    }
    const { draftTokens = 0, draftCostRatio = 0 } = this.#options.speculative ?? {}
    return {
      prefillTokens: step.prefillTokens,
      prefillContextTokens,
      decodeSequences,
      decodeContextTokens,
      guessedTokens: step.decodeTokens - decodeSequences,
      draftSteps: step.decodeTokens > decodeSequences ? draftTokens * draftCostRatio : 0,
    }
  }

  #finish(step: TimedStep): StepReport {
    const emitted: Sequence[] = []
    const finished: Sequence[] = []
    const msPerToken = (step.endsAtMs - step.startedAtMs) / (step.prefillTokens + step.decodeTokens)
    for (const sequence of step.items) {
      if (sequence.state === 'ended') continue
      sequence.engineMs += msPerToken * sequence.scheduledTokens
      const emittedTokens = this.#emittedBy(sequence)
      sequence.computedTokens += sequence.decodes ? emittedTokens : sequence.scheduledTokens
      sequence.scheduledTokens = 0
      if (emittedTokens === 0) continue
      this.#emit(sequence, emittedTokens, step.endsAtMs)
      emitted.push(sequence)
      if (sequence.generatedTokens >= sequence.outputTokens) finished.push(sequence)
    }
    for (const sequence of finished) this.#end(sequence)
    const { startedAtMs, endsAtMs, prefillTokens, decodeTokens, preempted } = step
    return { startedAtMs, endedAtMs: endsAtMs, prefillTokens, decodeTokens, emitted, finished, preempted }
  }

  /** Tokens that come out of the step: none of a part of a prompt, one of a plain decode, more of good guesses. */
  #emittedBy(sequence: Sequence): Tokens {
    if (!sequence.decodes) return sequence.pendingTokens > sequence.scheduledTokens ? 0 : 1
    const { acceptanceRatio = 0 } = this.#options.speculative ?? {}
    let tokens = 1
    while (tokens < sequence.scheduledTokens && this.#guesses.uniform() < acceptanceRatio) tokens++
    return tokens
  }

  #emit(sequence: Sequence, tokens: Tokens, nowMs: Ms): void {
    const isFirst = sequence.generatedTokens === 0
    sequence.generatedTokens += tokens
    sequence.emittedTokens = tokens
    this.#totals.generation += tokens
    if (!isFirst) return
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
