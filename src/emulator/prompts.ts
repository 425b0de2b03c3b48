/** Reads the prompts out of the bodies of each route. */
import { badRequest, invalidBody } from './errors.ts'
import { isObject, type JsonObject } from './generation.ts'
import { idPrompt, MEDIA_PART_TOKENS, type Prompt, TEMPLATE_TOKENS, textPrompt } from './tokens.ts'

/** The prompt of a conversation: every message's role and text, plus what the template and media add. */
export function chatPrompt(body: JsonObject, salt: string): Prompt {
  const { messages } = body
  if (!Array.isArray(messages)) throw missing(body, 'messages')
  if (messages.length === 0) {
    throw badRequest('Cannot apply chat template to an empty conversation. Provide at least one message.')
  }
  return conversation(messages, body, salt)
}

/** The prompt of `/v1/messages`, where the system text stands apart. */
export function messagesPrompt(body: JsonObject, salt: string): Prompt {
  const { messages, system } = body
  if (!Array.isArray(messages)) throw missing(body, 'messages')
  const head = system === undefined ? [] : [{ role: 'system', content: system }]
  return conversation([...head, ...messages], body, salt)
}

/** The prompt of `/v1/responses`. */
export function responsesPrompt(body: JsonObject, salt: string): Prompt {
  const { input, instructions } = body
  if (input === undefined) throw missing(body, 'input')
  const head = typeof instructions === 'string' ? [{ role: 'system', content: instructions }] : []
  const turns: readonly unknown[] = Array.isArray(input) ? input : [{ role: 'user', content: input }]
  return conversation([...head, ...turns], body, salt)
}

/** The prompts of `/v1/completions`: a text, token ids, or a list of either. */
export function completionPrompts(body: JsonObject, salt: string): readonly Prompt[] {
  const { prompt } = body
  if (prompt === undefined) throw missing(body, 'prompt')
  if (typeof prompt === 'string') return [textPrompt(prompt, salt, 0)]
  if (!Array.isArray(prompt) || prompt.length === 0)
    throw badRequest('prompt must be a text, token ids, or a list of them')
  if (prompt.every((entry) => Number.isInteger(entry))) return [idPrompt(prompt, salt)]
  return prompt.map((entry: unknown) => {
    if (typeof entry === 'string') return textPrompt(entry, salt, 0)
    if (Array.isArray(entry) && entry.every((id) => Number.isInteger(id))) return idPrompt(entry, salt)
    throw badRequest('each prompt of a list must be a text or a list of token ids')
  })
}

/** What keeps equal texts apart in the prefix cache: another model or another `cache_salt`. */
export function cacheSalt(model: string, body: JsonObject): string {
  return `${model}\n${typeof body.cache_salt === 'string' ? body.cache_salt : ''}`
}

function conversation(messages: readonly unknown[], body: JsonObject, salt: string): Prompt {
  // Tools stand at the head of the rendered prompt in most templates.
  let text = Array.isArray(body.tools) && body.tools.length > 0 ? JSON.stringify(body.tools) : ''
  let extraTokens = TEMPLATE_TOKENS * (messages.length + 1)
  for (const message of messages) {
    if (!isObject(message)) continue
    text += `${String(message.role)}\n`
    const parts: readonly unknown[] = Array.isArray(message.content) ? message.content : [message.content]
    for (const part of parts) {
      const partText = textOf(part)
      if (partText === undefined) extraTokens += MEDIA_PART_TOKENS
      else text += partText
    }
    if (Array.isArray(message.tool_calls)) text += JSON.stringify(message.tool_calls)
  }
  return textPrompt(text, salt, extraTokens)
}

/** The text of a content part; undefined for media. */
function textOf(part: unknown): string | undefined {
  if (typeof part === 'string') return part
  if (part === null || part === undefined) return ''
  if (!isObject(part)) return String(part)
  if (typeof part.text === 'string') return part.text
  return part.type === 'tool_result' || part.type === 'tool_use' ? JSON.stringify(part) : undefined
}

function missing(body: JsonObject, field: string) {
  return invalidBody(
    `body.${field}`,
    'missing',
    'Field required',
    `<dict of ${Object.keys(body).length} items>`,
  )
}
