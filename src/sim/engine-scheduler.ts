/** The scheduler of a vLLM V1 engine: composes the next step from what runs and what waits. */
import type { Ms, Tokens } from '../core/units.ts'
import { EngineQueue, runsSooner } from './engine-queue.ts'
import type { Sequence } from './engine-sequence.ts'
import type { EngineOptions } from './engine-types.ts'
import type { KvCache } from './kv-cache.ts'

const NO_HASHES: readonly string[] = []

/** A step as composed: who computes how much in it (`scheduledTokens` of each), and who was thrown back for it. */
export interface Step {
  readonly startedAtMs: Ms
  readonly items: Sequence[]
  readonly preempted: Sequence[]
  budgetTokens: Tokens
  prefillTokens: Tokens
  decodeTokens: Tokens
}

/**
 * A step first gives every running sequence its tokens (one per decode, the next chunk of a partial prefill), then
 * takes waiting ones in order while the token budget, the sequence limit and the KV memory allow; a prompt enters only
 * when all of it fits, and none overtakes a head that doesn't. When a running sequence finds no block, the last
 * arrived one (or the one of worst priority) is thrown back to the queue and recomputed later, and nobody new enters
 * in that step.
 */
export class EngineScheduler {
  readonly totals = { preemptions: 0, prefixQueryTokens: 0, prefixHitTokens: 0 }
  readonly #kv: KvCache
  readonly #options: EngineOptions
  readonly #maxNumSeqs: number
  readonly #maxNumBatchedTokens: Tokens
  readonly #queue: EngineQueue
  #running: Sequence[] = []

  constructor(
    options: EngineOptions,
    kv: KvCache,
    limits: { maxNumSeqs: number; maxNumBatchedTokens: Tokens },
  ) {
    this.#options = options
    this.#kv = kv
    this.#queue = new EngineQueue(options.policy ?? 'fcfs')
    this.#maxNumSeqs = limits.maxNumSeqs
    this.#maxNumBatchedTokens = limits.maxNumBatchedTokens
  }

  get runningSequences(): number {
    return this.#running.length
  }
  get waitingSequences(): number {
    return this.#queue.length
  }

  enqueue(sequence: Sequence): void {
    this.#queue.push(sequence)
  }

  /** Takes a sequence out wherever it is and frees its blocks. */
  remove(sequence: Sequence): void {
    if (sequence.state === 'running') this.#running.splice(this.#running.indexOf(sequence), 1)
    else this.#queue.remove(sequence)
    this.#kv.release(sequence.table)
  }

  /**
   * The next step, or undefined when nobody can compute anything. A round in which the only work was to throw somebody
   * back computes nothing and takes no time, so the next one follows at once.
   */
  compose(nowMs: Ms): Step | undefined {
    const preempted: Sequence[] = []
    for (;;) {
      const step = this.#round(nowMs)
      preempted.push(...step.preempted)
      if (step.items.length > 0) return { ...step, preempted }
      if (step.preempted.length === 0) return undefined
    }
  }

  #round(nowMs: Ms): Step {
    const step: Step = {
      startedAtMs: nowMs,
      items: [],
      preempted: [],
      budgetTokens: this.#maxNumBatchedTokens,
      prefillTokens: 0,
      decodeTokens: 0,
    }
    this.#scheduleRunning(step)
    if (step.preempted.length === 0) this.#scheduleWaiting(step)
    return step
  }

  #scheduleRunning(step: Step): void {
    for (let at = 0; at < this.#running.length && step.budgetTokens > 0; at++) {
      const sequence = this.#running[at]
      if (sequence === undefined) break
      const tokens = Math.min(sequence.pendingTokens + this.#guessesOf(sequence), step.budgetTokens)
      while (!this.#kv.grow(sequence.table, sequence.computedTokens + tokens)) {
        const victim = this.#victim()
        const victimAt = this.#running.indexOf(victim)
        this.#preempt(victim, victimAt, step)
        if (victimAt < at) at--
        if (victim === sequence) break
      }
      if (sequence.state !== 'running') break
      this.#schedule(sequence, tokens, step)
    }
  }

  #scheduleWaiting(step: Step): void {
    while (step.budgetTokens > 0 && this.#running.length < this.#maxNumSeqs) {
      const sequence = this.#queue.head()
      if (sequence === undefined || !this.#enter(sequence, step.budgetTokens)) return
      this.#queue.shift()
      sequence.state = 'running'
      sequence.scheduledAtMs ??= step.startedAtMs
      this.#running.push(sequence)
      const tokens = Math.min(sequence.pendingTokens, step.budgetTokens)
      if (!this.#kv.grow(sequence.table, sequence.computedTokens + tokens)) {
        throw new RangeError('a prompt that fits as a whole must fit by its first chunk')
      }
      this.#schedule(sequence, tokens, step)
    }
  }

  /** Attaches what is cached of the prompt, when all the rest of it fits too (unchunked: into this step as well). */
  #enter(sequence: Sequence, budgetTokens: Tokens): boolean {
    const kv = this.#kv
    const contextTokens = sequence.pendingTokens
    const extentTokens = sequence.request.prefixExtentTokens ?? kv.blockTokens
    const hashes = this.#hashes(sequence)
    // The last token is always computed, since something has to come out of the step.
    const { extents, idleBlocks } = kv.match(hashes, extentTokens, contextTokens - 1)
    const cachedTokens = extents * extentTokens
    const computedTokens = Math.max(cachedTokens, sequence.remoteTokens)
    const missingBlocks = Math.ceil((contextTokens - cachedTokens) / kv.blockTokens)
    if (this.#options.chunkedPrefill === false && contextTokens - computedTokens > budgetTokens) return false
    if (missingBlocks > kv.availableBlocks - idleBlocks) return false
    kv.attach(sequence.table, hashes, extents)
    sequence.computedTokens = computedTokens
    if (sequence.scheduledAtMs === undefined) {
      sequence.cachedTokens = sequence.request.remotePrefill?.cachedTokens ?? cachedTokens
      this.totals.prefixQueryTokens += sequence.promptTokens
      this.totals.prefixHitTokens += cachedTokens
    }
    return true
  }

  #schedule(sequence: Sequence, tokens: Tokens, step: Step): void {
    if (sequence.decodes) step.decodeTokens += tokens
    else step.prefillTokens += tokens
    sequence.scheduledTokens = tokens
    step.budgetTokens -= tokens
    step.items.push(sequence)
    const extentTokens = sequence.request.prefixExtentTokens ?? this.#kv.blockTokens
    this.#kv.publish(sequence.table, this.#hashes(sequence), extentTokens, sequence.computedTokens + tokens)
  }

  /** Tokens that it proposes for the next step, none past its end. */
  #guessesOf(sequence: Sequence): Tokens {
    const { speculative } = this.#options
    if (speculative === undefined || !sequence.decodes) return 0
    return Math.min(speculative.draftTokens, sequence.outputTokens - sequence.generatedTokens - 1)
  }

  /** Who is thrown back for want of KV: the last arrived, or the one that would run last by priority. */
  #victim(): Sequence {
    let victim = this.#running[this.#running.length - 1]
    if (victim === undefined) throw new RangeError('nobody runs, so nobody can lack a block')
    if (this.#options.policy === 'priority') {
      for (const sequence of this.#running) if (runsSooner(victim, sequence)) victim = sequence
    }
    return victim
  }

  #preempt(victim: Sequence, at: number, step: Step): void {
    this.#running.splice(at, 1)
    this.#kv.release(victim.table)
    const itemAt = step.items.indexOf(victim)
    if (itemAt >= 0) {
      step.items.splice(itemAt, 1)
      step.budgetTokens += victim.scheduledTokens
      if (victim.decodes) step.decodeTokens -= victim.scheduledTokens
      else step.prefillTokens -= victim.scheduledTokens
    }
    victim.state = 'waiting'
    victim.computedTokens = 0
    victim.scheduledTokens = 0
    victim.preemptions++
    this.totals.preemptions++
    step.preempted.push(victim)
    this.#queue.putBack(victim)
  }

  #hashes(sequence: Sequence): readonly string[] {
    return this.#options.prefixCaching === false ? NO_HASHES : (sequence.request.prefixHashes ?? NO_HASHES)
  }
}
