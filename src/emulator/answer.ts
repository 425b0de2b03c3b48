/** One answer on its way to a client: takes tokens from the engine and writes them as frames or as one body. */
import type { ServerResponse } from 'node:http'
import type { Ms } from '../core/units.ts'
import type { SequenceView } from '../sim/engine-types.ts'
import type { TokenListener } from './engine-loop.ts'
import { type EngineError, errorBody, errorEvent } from './errors.ts'
import {
  type AnswerHead,
  type AnswerUsage,
  DONE_FRAME,
  type FinishReason,
  type FrameWriter,
  type WholeChoice,
} from './frames.ts'
import type { Generation } from './generation.ts'
import { messagesWhole, messagesWriter } from './messages-frames.ts'
import { chatWhole, chatWriter, completionWhole, completionWriter } from './openai-frames.ts'
import { responsesWhole, responsesWriter } from './responses-frames.ts'
import { answerWord } from './tokens.ts'

const WRITERS = {
  chat: chatWriter,
  completion: completionWriter,
  messages: messagesWriter,
  responses: responsesWriter,
}
const WHOLES = {
  chat: chatWhole,
  completion: completionWhole,
  messages: messagesWhole,
  responses: responsesWhole,
}

export interface AnswerParts {
  readonly response: ServerResponse
  readonly generation: Generation
  readonly head: AnswerHead
  readonly seed: number
  /** Headers of the answer, without those of its length. */
  readonly headers: Readonly<Record<string, string>>
  readonly onFinished: (sequence: SequenceView, atMs: Ms, reason: FinishReason) => void
  /** Called once, when nothing more will be written. */
  readonly onEnd: () => void
}

export class Answer {
  readonly #parts: AnswerParts
  readonly #writer: FrameWriter | undefined
  readonly #texts: string[]
  readonly #finishes: FinishReason[] = []
  readonly #cachedTokens: number[]
  #outputTokens = 0
  #openChoices: number
  #ended = false

  constructor(parts: AnswerParts) {
    this.#parts = parts
    const { generation, head } = parts
    this.#writer = generation.stream ? WRITERS[generation.style](head) : undefined
    this.#texts = Array.from({ length: head.choices }, () => '')
    this.#cachedTokens = generation.prompts.map(() => 0)
    this.#openChoices = head.choices
  }

  get ended(): boolean {
    return this.#ended
  }

  /** Sends status and headers of a stream; the engine has not been asked yet. */
  open(): void {
    if (this.#writer === undefined) return
    const { response, headers } = this.#parts
    response.writeHead(200, {
      ...headers,
      'content-type': 'text/event-stream; charset=utf-8',
      'transfer-encoding': 'chunked',
    })
    response.flushHeaders()
  }

  /** Listens for the tokens of one of the prompts. */
  listener(promptIndex: number): TokenListener {
    return { onToken: (sequence, finished, atMs) => this.#token(promptIndex, sequence, finished, atMs) }
  }

  /** Ends it with an error: as a body, or as an event when the stream has begun. */
  fail(error: EngineError): void {
    if (this.#ended) return
    const { response, generation, headers } = this.#parts
    if (response.headersSent) {
      response.write(errorEvent(error))
      response.end(DONE_FRAME)
    } else {
      const body = errorBody(error, generation.style === 'messages')
      response.writeHead(error.status, {
        ...headers,
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(body),
      })
      response.end(body)
    }
    this.close()
  }

  /** Nothing more is to be written, whatever the reason. Idempotent. */
  close(): void {
    if (this.#ended) return
    this.#ended = true
    this.#parts.onEnd()
  }

  #token(promptIndex: number, sequence: SequenceView, finished: boolean, atMs: Ms): void {
    if (this.#ended) return
    const { generation, seed, onFinished } = this.#parts
    const choice = promptIndex * generation.n + sequence.index
    const text = answerWord(seed + choice * 7919, sequence.generatedTokens - 1)
    const finish = sequence.outputTokens >= generation.maxTokens ? 'length' : 'stop'
    this.#outputTokens++
    if (sequence.index === 0) this.#cachedTokens[promptIndex] = sequence.cachedTokens
    if (this.#writer === undefined) this.#texts[choice] += text
    else {
      const own = {
        promptTokens: sequence.promptTokens,
        outputTokens: sequence.generatedTokens,
        cachedTokens: 0,
      }
      this.#write(this.#writer.token({ choice, text, ...(finished ? { finish } : {}) }, own))
    }
    if (!finished) return
    onFinished(sequence, atMs, finish)
    this.#finishes[choice] = finish
    if (--this.#openChoices === 0) this.#finish()
  }

  #finish(): void {
    const { response, generation, head, headers } = this.#parts
    const usage = this.#usage()
    if (this.#writer !== undefined) {
      this.#write(this.#writer.end(usage))
      response.end()
    } else {
      const choices: WholeChoice[] = this.#texts.map((text, at) => ({
        text,
        finish: this.#finishes[at] ?? 'stop',
      }))
      const body = WHOLES[generation.style](head, choices, usage)
      response.writeHead(200, {
        ...headers,
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(body),
      })
      response.end(body)
    }
    this.close()
  }

  #usage(): AnswerUsage {
    const { prompts } = this.#parts.generation
    return {
      promptTokens: prompts.reduce((sum, prompt) => sum + prompt.tokens, 0),
      outputTokens: this.#outputTokens,
      cachedTokens: this.#cachedTokens.reduce((sum, tokens) => sum + tokens, 0),
    }
  }

  /** One chunk a frame, as vLLM sends them; Node corks the socket for the rest of the tick. */
  #write(frames: readonly string[]): void {
    const { response } = this.#parts
    for (const frame of frames) response.write(frame)
  }
}
