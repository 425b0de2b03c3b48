/** What the emulated engine answers when it refuses, in the form of vLLM 0.32. */

/** A refusal with its status; `type`, `param` and `message` as vLLM words them. */
export class EngineError extends Error {
  override readonly name = 'EngineError'
  readonly status: number
  readonly type: string
  readonly param: string | null

  constructor(status: number, type: string, message: string, param: string | null = null) {
    super(message)
    this.status = status
    this.type = type
    this.param = param
  }
}

export function badRequest(message: string, param: string | null = null): EngineError {
  return new EngineError(400, 'BadRequestError', message, param)
}

/** A body that the schema refuses, with the place in it. */
export function invalidBody(location: string, kind: string, message: string, input: string): EngineError {
  const detail = `{'type': '${kind}', 'loc': '${location}', 'msg': '${message}', 'input': '${input}'}`
  return new EngineError(400, 'Bad Request', `1 validation error:\n  ${detail}`, location)
}

export function unknownModel(name: string, served: readonly string[]): EngineError {
  const message = `The model \`${name}\` does not exist. Valid aliases: ${served.join(', ')}.`
  return new EngineError(404, 'NotFoundError', message, 'model')
}

/** One of vLLM's own queue caps is reached. */
export function engineFull(reason: 'max_num_queued_reqs' | 'max_num_queued_tokens'): EngineError {
  const what =
    reason === 'max_num_queued_reqs'
      ? 'The engine is currently busy and cannot accept new requests.'
      : 'The engine has reached its prefill token backlog limit.'
  return new EngineError(
    503,
    'Service Unavailable',
    `${what} Please try again later or on a different instance.`,
  )
}

/** The engine process behind the API server is dead. */
export function engineDead(): EngineError {
  const message = 'EngineCore encountered an issue. See stack trace (above) for the root cause.'
  return new EngineError(500, 'InternalServerError', message)
}

/** A new request while the server drains after SIGTERM. */
export function engineDraining(): EngineError {
  return new EngineError(500, 'InternalServerError', 'cannot schedule new futures after shutdown')
}

export function promptTooLong(maxModelLen: number, promptTokens: number): EngineError {
  return badRequest(
    `This model's maximum context length is ${maxModelLen} tokens. However, your prompt contains ${promptTokens} input tokens, ` +
      `which exceeds this limit even without any output tokens. Please reduce the length of the input prompt. ` +
      `(parameter=input_tokens, value=${promptTokens})`,
    'input_tokens',
  )
}

/** The JSON body of a refusal; Anthropic's shape on `/v1/messages`. */
export function errorBody(error: EngineError, anthropic: boolean): string {
  const { message, type, param, status } = error
  if (anthropic) return JSON.stringify({ type: 'error', error: { type, message } })
  return JSON.stringify({ error: { message, type, param, code: status } })
}

/** The event that tells of a failure inside a stream that has begun; spaced as Python prints it. */
export function errorEvent(error: EngineError): string {
  const { message, type, param, status } = error
  const fields = `"message": ${JSON.stringify(message)}, "type": ${JSON.stringify(type)}, "param": ${JSON.stringify(param)}, "code": ${status}`
  return `data: {"error": {${fields}}}\n\n`
}
