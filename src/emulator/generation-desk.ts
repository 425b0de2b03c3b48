/** Every generation under way: from a read body through the engine to the end of its answer. */
import { randomBytes } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import { hash32, type Rng } from '../sim/rng.ts'
import { Answer } from './answer.ts'
import type { EngineLoop } from './engine-loop.ts'
import { type EngineError, engineFull, promptTooLong } from './errors.ts'
import type { AnswerHead } from './frames.ts'
import type { AnswerStyle, Generation } from './generation.ts'
import type { EngineMetrics } from './metrics.ts'
import { drawOutputTokens } from './output-length.ts'

const ID_PREFIXES: Readonly<Record<AnswerStyle, string>> = {
  chat: 'chatcmpl-',
  messages: 'chatcmpl-',
  completion: 'cmpl-',
  responses: 'resp_',
}

export interface DeskParts {
  readonly loop: EngineLoop
  readonly metrics: EngineMetrics
  readonly rng: Rng
  readonly seed: number
  readonly promptTokensDetails: boolean
}

/** An answer with the engine requests that feed it, one a prompt. */
interface Job {
  readonly answer: Answer
  readonly engineIds: readonly string[]
}

export class GenerationDesk {
  readonly #parts: DeskParts
  readonly #jobs = new Set<Job>()
  #number = 0
  #whenIdle: (() => void)[] = []

  constructor(parts: DeskParts) {
    this.#parts = parts
  }

  /** Requests whose answer has not ended. */
  get openRequests(): number {
    return this.#jobs.size
  }

  /**
   * Starts an answer. Refuses by throwing while that can still be told by status. A stream's headers leave at once;
   * the engine is asked a turn later, after rendering, and what it refuses then is told inside the stream.
   */
  start(
    response: ServerResponse,
    generation: Generation,
    headers: Readonly<Record<string, string>>,
    clientId: string | undefined,
  ): void {
    const { metrics, seed, promptTokensDetails } = this.#parts
    metrics.request(generation)
    const outputs = generation.prompts.map(() => this.#drawOutputs(generation))
    this.#refuseIfFull(generation, outputs)
    const id = `${ID_PREFIXES[generation.style]}${generation.requestId ?? clientId ?? randomBytes(8).toString('hex')}`
    const number = this.#number++
    const engineIds = generation.prompts.map((_, index) => `${number}-${index}`)
    const answer = new Answer({
      response,
      generation,
      head: this.#head(generation, id, promptTokensDetails),
      seed: hash32(id, seed),
      headers,
      onFinished: (sequence, atMs, reason) => metrics.finished(sequence, atMs, reason, generation.maxTokens),
      onEnd: () => this.#close(job),
    })
    const job: Job = { answer, engineIds }
    this.#jobs.add(job)
    response.once('close', () => answer.close())
    answer.open()
    setImmediate(() => {
      if (!answer.ended) this.#submit(job, generation, outputs)
    })
  }

  /** Ends every answer under way with that error. */
  failAll(error: EngineError): void {
    for (const job of [...this.#jobs]) job.answer.fail(error)
  }

  /** Resolves when no answer is under way. */
  idle(): Promise<void> {
    return this.#jobs.size === 0 ? Promise.resolve() : new Promise((resolve) => this.#whenIdle.push(resolve))
  }

  #drawOutputs(generation: Generation): readonly number[] {
    return Array.from({ length: generation.n }, () => drawOutputTokens(generation, this.#parts.rng))
  }

  #refuseIfFull(generation: Generation, outputs: readonly (readonly number[])[]): void {
    const { loop, metrics } = this.#parts
    generation.prompts.forEach((prompt, index) => {
      const rejection = loop.model.wouldReject(prompt.tokens, outputs[index] ?? [])
      if (rejection === undefined) return
      if (rejection === 'over_context') throw promptTooLong(loop.model.maxModelLenTokens, prompt.tokens)
      metrics.rejected(rejection)
      throw engineFull(rejection)
    })
  }

  #submit(job: Job, generation: Generation, outputs: readonly (readonly number[])[]): void {
    const { loop, metrics } = this.#parts
    for (const [index, prompt] of generation.prompts.entries()) {
      const request = {
        id: job.engineIds[index] ?? '',
        promptTokens: prompt.tokens,
        outputTokens: outputs[index] ?? [],
        prefixHashes: prompt.hashes,
        priority: generation.priority,
      }
      const outcome = loop.submit(request, job.answer.listener(index))
      if (outcome === 'accepted') continue
      if (outcome === 'over_context')
        job.answer.fail(promptTooLong(loop.model.maxModelLenTokens, prompt.tokens))
      else {
        metrics.rejected(outcome)
        job.answer.fail(engineFull(outcome))
      }
      return
    }
  }

  #head(generation: Generation, id: string, promptTokensDetails: boolean): AnswerHead {
    return {
      id,
      model: generation.model,
      created: Math.floor(Date.now() / 1000),
      choices: generation.n * generation.prompts.length,
      maxTokens: generation.maxTokens,
      includeUsage: generation.includeUsage,
      continuousUsage: generation.continuousUsage,
      promptTokensDetails,
    }
  }

  /** Whatever ended the answer: the engine forgets it at once. */
  #close(job: Job): void {
    this.#jobs.delete(job)
    for (const id of job.engineIds) this.#parts.loop.abort(id)
    if (this.#jobs.size > 0) return
    for (const resolve of this.#whenIdle.splice(0)) resolve()
  }
}
