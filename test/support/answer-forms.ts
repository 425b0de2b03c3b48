/** What engines that tests steer answer on each route: frames, whole answers and errors in the form of vLLM. */
import { type EngineError, errorBody, errorEvent } from '../../src/emulator/errors.ts'
import {
  type AnswerHead,
  type AnswerUsage,
  DONE_FRAME,
  type FrameWriter,
  type WholeChoice,
} from '../../src/emulator/frames.ts'
import { messagesWhole, messagesWriter } from '../../src/emulator/messages-frames.ts'
import { chatWhole, chatWriter, completionWhole, completionWriter } from '../../src/emulator/openai-frames.ts'
import { responsesWhole, responsesWriter } from '../../src/emulator/responses-frames.ts'
import type { GenerationPath } from './generation-paths.ts'

interface AnswerForm {
  readonly writer: (head: AnswerHead) => FrameWriter
  readonly whole: (head: AnswerHead, choices: readonly WholeChoice[], usage: AnswerUsage) => string
  /** The body of a refusal. */
  readonly refusal: (error: EngineError) => string
  /** What tells of an error inside a stream, and ends it. */
  readonly failure: (error: EngineError) => readonly string[]
}

const refusal = (error: EngineError) => errorBody(error, false)
const openai = { refusal, failure: (error: EngineError) => [errorEvent(error), DONE_FRAME] }

export const ANSWER_FORMS: Readonly<Record<GenerationPath, AnswerForm>> = {
  '/v1/chat/completions': { writer: chatWriter, whole: chatWhole, ...openai },
  '/v1/completions': { writer: completionWriter, whole: completionWhole, ...openai },
  '/v1/responses': {
    writer: responsesWriter,
    whole: responsesWhole,
    refusal,
    failure: (error) => [errorEvent(error)],
  },
  '/v1/messages': {
    writer: messagesWriter,
    whole: messagesWhole,
    refusal: (error) => errorBody(error, true),
    failure: (error) => [`event: error\ndata: ${errorBody(error, true)}\n\n`],
  },
}

/** One id for all: responses are remembered by theirs, and a book that fills would look like a leak. */
export const ANSWER_HEAD: AnswerHead = {
  id: 'resp_scripted',
  model: 'tiny',
  created: 1795965696,
  choices: 1,
  maxTokens: 64,
  includeUsage: true,
  continuousUsage: false,
  promptTokensDetails: false,
}
