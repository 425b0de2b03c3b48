/** One generation request as read from a body: what to compute and how to answer. */
import type { Tokens } from '../core/units.ts'
import { badRequest, type EngineError, invalidBody, promptTooLong, unknownModel } from './errors.ts'
import type { Prompt } from './tokens.ts'

export type JsonObject = Readonly<Record<string, unknown>>

/** How the answer is written. */
export type AnswerStyle = 'chat' | 'completion' | 'responses' | 'messages'

export interface Generation {
  readonly style: AnswerStyle
  readonly model: string
  readonly prompts: readonly Prompt[]
  /** Choices per prompt. */
  readonly n: number
  /** The client's cap, or what is left of the context. */
  readonly maxTokens: Tokens
  /** Whether the client gave the cap. */
  readonly capped: boolean
  readonly minTokens: Tokens
  readonly ignoreEos: boolean
  /** Where the simulated model ends by itself, when the load says so. */
  readonly plannedTokens?: Tokens
  readonly stream: boolean
  readonly includeUsage: boolean
  readonly continuousUsage: boolean
  readonly priority: number
  /** The client's own id from the body. */
  readonly requestId?: string
}

/** What a body is checked against. */
export interface ModelFacts {
  readonly servedNames: readonly string[]
  readonly maxModelLen: Tokens
}

/** Parses a JSON object, or throws what vLLM answers. */
export function parseBody(text: string, contentType: string | undefined): JsonObject {
  if (text === '') throw invalidBody('body', 'missing', 'Field required', 'None')
  if (contentType !== undefined && !/^application\/([\w.-]+\+)?json\b/i.test(contentType)) {
    throw badRequest("1 validation error:\n  Unsupported Media Type: Only 'application/json' is allowed")
  }
  let body: unknown
  try {
    body = JSON.parse(text)
  } catch (error) {
    throw notJson(error, text)
  }
  if (typeof body !== 'object' || body === null || Array.isArray(body)) {
    throw invalidBody('body', 'model_attributes_type', 'Input should be a valid dictionary', typeof body)
  }
  return body as JsonObject
}

function notJson(error: unknown, text: string): EngineError {
  const at = /position (\d+)/.exec(error instanceof Error ? error.message : '')?.[1] ?? text.length
  return invalidBody(`body.${at}`, 'json_invalid', 'JSON decode error', '<dict of 0 items>')
}

/** Checks what all generation routes share. `prompts` are those of the route, `capField` its name for the cap. */
export function readGeneration(
  style: AnswerStyle,
  body: JsonObject,
  prompts: readonly Prompt[],
  facts: ModelFacts,
): Generation {
  const model = readModel(body, facts.servedNames)
  const stream = body.stream === true
  const options = isObject(body.stream_options) ? body.stream_options : undefined
  if (options !== undefined && !stream) {
    throw badRequest(
      'Stream options can only be defined when `stream=True`. (parameter=stream_options)',
      'stream_options',
    )
  }
  const n = integer(body.n) ?? 1
  if (n < 1) throw badRequest(`n must be at least 1, got ${n}.`)
  const longest = Math.max(...prompts.map((prompt) => prompt.tokens))
  const cap = readCap(body)
  checkLengths(longest, cap, facts.maxModelLen)
  const maxTokens = cap ?? facts.maxModelLen - longest
  return {
    style,
    model,
    prompts,
    n,
    maxTokens,
    capped: cap !== undefined,
    minTokens: Math.min(integer(body.min_tokens) ?? 0, maxTokens),
    ignoreEos: body.ignore_eos === true,
    ...plannedLength(body, maxTokens),
    stream,
    includeUsage: options?.include_usage === true,
    continuousUsage: options?.include_usage === true && options.continuous_usage_stats === true,
    priority: integer(body.priority) ?? 0,
    ...(typeof body.request_id === 'string' ? { requestId: body.request_id } : {}),
  }
}

/** `vllm_xargs.output_tokens`: where the simulated model ends by itself, so that a load can be the same everywhere. */
function plannedLength(body: JsonObject, maxTokens: Tokens): Pick<Generation, 'plannedTokens'> {
  const planned = isObject(body.vllm_xargs) ? integer(body.vllm_xargs.output_tokens) : undefined
  return planned === undefined ? {} : { plannedTokens: Math.min(Math.max(planned, 1), maxTokens) }
}

function readCap(body: JsonObject): Tokens | undefined {
  const cap =
    integer(body.max_completion_tokens) ?? integer(body.max_output_tokens) ?? integer(body.max_tokens)
  if (cap !== undefined && cap < 1) {
    throw badRequest(
      `max_tokens must be at least 1, got ${cap}. (parameter=max_tokens, value=${cap})`,
      'max_tokens',
    )
  }
  return cap
}

function checkLengths(promptTokens: Tokens, cap: Tokens | undefined, maxModelLen: Tokens): void {
  if (cap !== undefined && cap > maxModelLen) {
    throw badRequest(
      `max_tokens=${cap} cannot be greater than max_model_len=${maxModelLen}. Please request fewer output tokens. ` +
        `(parameter=max_tokens, value=${cap})`,
      'max_tokens',
    )
  }
  if (promptTokens >= maxModelLen) throw promptTooLong(maxModelLen, promptTokens)
  if (promptTokens + (cap ?? 0) > maxModelLen) {
    throw badRequest(
      `This model's maximum context length is ${maxModelLen} tokens. However, ${cap} output tokens were requested and ` +
        `the prompt contains ${promptTokens} input tokens. (parameter=input_tokens, value=${promptTokens})`,
      'input_tokens',
    )
  }
}

/** The served name asked for; a body without one means the first. */
export function readModel(body: JsonObject, servedNames: readonly string[]): string {
  const { model } = body
  if (model === undefined || model === null) return servedNames[0] ?? 'model'
  if (typeof model === 'string' && servedNames.includes(model)) return model
  throw unknownModel(String(model), servedNames)
}

/** A whole number, or undefined for anything else. */
export function integer(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isInteger(value) ? value : undefined
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
