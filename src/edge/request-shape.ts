/** Reads from a request's JSON what judgement needs: model, prompt, size, sequences and caps. */
import { ProxyError } from '../errors.ts'
import { isNestedDeeper, isObject, type JsonObject, numberAtLeast, stringOf } from './json.ts'
import { PromptWriter, type Rendered } from './prompt-text.ts'
import type { Route } from './routes.ts'

export interface RequestShape {
  readonly model: string | undefined
  readonly streamed: boolean
  /** Engine sequences: n times prompts, at least 1. */
  readonly sequences: number
  /** Prompts that came in one list, at least 1. */
  readonly prompts: number
  /** UTF-8 bytes of all text in the prompt. */
  readonly textBytes: number
  /** Counted exactly when the prompt came as token ids: all prompts together, and the longest of them. */
  readonly exactTokens: number | undefined
  readonly longestTokens: number | undefined
  readonly mediaParts: number
  readonly maxOutputTokens: number | undefined
  /** What one sequence makes at least, when the client said so. */
  readonly minOutputTokens: number | undefined
  /** The first prompt, for recognising its beginning. */
  readonly prefix: { readonly text: string } | { readonly ids: readonly number[] }
  readonly cacheSalt: string
  /** The client's own stream options, when it sent an object. */
  readonly streamOptions: JsonObject | undefined
  /** Names of the top-level members. */
  readonly fields: ReadonlySet<string>
}

/** vLLM's own bound on `n` (`VLLM_MAX_N_SEQUENCES`); what is booked for a request must stay a sane number. */
const MAX_SEQUENCES = 16_384
/** Longer than any context: a larger cap or floor of an answer is read as this, in tokens. */
const MAX_OUTPUT_TOKENS = 10_000_000
/** No prompt or schema comes near it, and walking deeper JSON exhausts the stack, here and in engines. */
const MAX_NESTING = 200
/** Many times what any route knows; a large body of nothing but names would cost ten times its size for as long as it waits. */
const MAX_MEMBERS = 1000

interface Prompt extends Rendered {
  readonly prompts: number
  readonly ids?: readonly number[]
  readonly exactTokens?: number
  readonly longestTokens?: number
}

/** Reads the shape. Throws a ProxyError `malformed` that says which member is wrong. */
export function readShape(route: Route, body: Buffer): RequestShape {
  const json = parse(body)
  const prompt = readPrompt(route, json)
  const streamed = readStreamed(route, json)
  const maxOutputTokens = maxOutput(route, json)
  return {
    model: readModel(json),
    streamed,
    sequences: sequencesOf(route, json, prompt),
    prompts: Math.max(1, prompt.prompts),
    textBytes: Buffer.byteLength(prompt.text),
    exactTokens: prompt.exactTokens,
    longestTokens: prompt.longestTokens,
    mediaParts: prompt.mediaParts,
    maxOutputTokens,
    minOutputTokens: minOutput(route, json, maxOutputTokens),
    prefix: prompt.ids === undefined ? { text: prompt.text } : { ids: prompt.ids },
    cacheSalt: stringOf(json.cache_salt) ?? '',
    streamOptions: isObject(json.stream_options) ? json.stream_options : undefined,
    fields: new Set(Object.keys(json)),
  }
}

function parse(body: Buffer): JsonObject {
  if (body.length === 0) throw malformed('the body is empty; send a JSON object')
  let json: unknown
  try {
    json = JSON.parse(body.toString('utf8'))
  } catch (error) {
    // The parser quotes the text it stumbled over; a prompt has no place in an error or a log.
    const position = /position \d+/.exec(error instanceof Error ? error.message : '')?.[0]
    throw malformed(`the body is not valid JSON${position === undefined ? '' : ` at ${position}`}`)
  }
  if (!isObject(json)) throw malformed('the body must be a JSON object')
  if (Object.keys(json).length > MAX_MEMBERS) {
    throw malformed(`the body has more than ${MAX_MEMBERS} members`)
  }
  if (isNestedDeeper(json, MAX_NESTING)) {
    throw malformed(`the body is nested more than ${MAX_NESTING} levels deep`)
  }
  return json
}

function readModel(json: JsonObject): string | undefined {
  if (json.model === undefined || json.model === null) return undefined
  if (typeof json.model !== 'string') throw malformed('`model` must be a string')
  return json.model
}

function readStreamed(route: Route, json: JsonObject): boolean {
  if (route.key === 'generate_stream') return true
  if (route.kind !== 'generate' || route.key === 'generate') return false
  const stream = json.stream
  if (stream !== undefined && stream !== null && typeof stream !== 'boolean') {
    throw malformed('`stream` must be true or false')
  }
  return stream === true
}

function readPrompt(route: Route, json: JsonObject): Prompt {
  switch (route.key) {
    case 'chat':
    case 'messages':
      return readMessages(json)
    case 'responses':
      return readResponsesInput(json)
    case 'completions':
      return readPromptMember(json.prompt, 'prompt')
    case 'embeddings':
      return readPromptMember(json.input ?? json.messages, 'input')
    case 'generate':
    case 'generate_stream':
      return readPromptMember(json.inputs, 'inputs')
    case 'tokenize':
      if (json.messages !== undefined) return readMessages(json)
      // llama.cpp and TGI each have a name of their own for it.
      return readPromptMember(json.prompt ?? json.content ?? json.inputs, 'prompt')
    case 'detokenize':
      return readPromptMember(json.tokens, 'tokens')
    default:
      return route.key satisfies never
  }
}

function readMessages(json: JsonObject): Prompt {
  if (!Array.isArray(json.messages)) throw malformed('`messages` must be an array')
  const writer = new PromptWriter()
  writer.json(json.tools)
  writer.content(json.system)
  for (const message of json.messages) writer.message(message)
  return promptOf(writer, 1)
}

function readResponsesInput(json: JsonObject): Prompt {
  const writer = new PromptWriter()
  writer.json(json.tools)
  writer.content(json.instructions)
  if (typeof json.input === 'string') writer.text(json.input)
  else if (Array.isArray(json.input)) for (const item of json.input) writer.message(item)
  else throw malformed('`input` must be a string or an array')
  return promptOf(writer, 1)
}

/** A text, a list of texts, a list of token ids, or a list of such lists. */
function readPromptMember(member: unknown, name: string): Prompt {
  if (typeof member === 'string') return { text: member, mediaParts: 0, prompts: 1 }
  if (!Array.isArray(member)) throw malformed(`\`${name}\` must be a string or an array`)
  if (member.length > 0 && member.every(isTokenId)) return idPrompts([member])
  const lists = member.filter((entry) => Array.isArray(entry) && entry.every(isTokenId))
  if (lists.length > 0 && lists.length === member.length) return idPrompts(lists)
  const writer = new PromptWriter()
  for (const entry of member) writer.message(entry)
  return promptOf(writer, member.length)
}

function promptOf(writer: PromptWriter, prompts: number): Prompt {
  const { text, mediaParts } = writer.done()
  return { text, mediaParts, prompts }
}

function idPrompts(lists: readonly (readonly number[])[]): Prompt {
  const exactTokens = lists.reduce((sum, list) => sum + list.length, 0)
  const longestTokens = lists.reduce((most, list) => Math.max(most, list.length), 0)
  return { text: '', mediaParts: 0, prompts: lists.length, ids: lists[0] ?? [], exactTokens, longestTokens }
}

function isTokenId(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value)
}

function sequencesOf(route: Route, json: JsonObject, { prompts }: Prompt): number {
  const sequences = Math.max(1, prompts) * choices(route, json)
  // A list of texts to embed may be long: it is booked as far as the books go.
  if (sequences <= MAX_SEQUENCES || route.kind !== 'generate') return Math.min(sequences, MAX_SEQUENCES)
  throw malformed(`prompts times choices (\`n\`) are more than ${MAX_SEQUENCES}; send several requests`)
}

function choices(route: Route, json: JsonObject): number {
  if (route.key === 'chat' || route.key === 'completions') return atLeastOne(json.n)
  if (route.dialect === 'tgi' && isObject(json.parameters)) return atLeastOne(json.parameters.best_of)
  return 1
}

/** What is no count of choices is left to the engine to refuse. */
function atLeastOne(value: unknown): number {
  return Math.floor(numberAtLeast(1, value) ?? 1)
}

function maxOutput(route: Route, json: JsonObject): number | undefined {
  if (route.dialect === 'tgi') {
    return isObject(json.parameters) ? outputTokens(0, json.parameters.max_new_tokens) : undefined
  }
  const caps =
    route.key === 'responses' ? json.max_output_tokens : (json.max_completion_tokens ?? json.max_tokens)
  return outputTokens(0, caps)
}

/** `min_tokens` and `ignore_eos` are extensions of the engines to these two routes. */
function minOutput(route: Route, json: JsonObject, cap: number | undefined): number | undefined {
  if (route.key !== 'chat' && route.key !== 'completions') return undefined
  if (json.ignore_eos === true && cap !== undefined) return cap
  const least = outputTokens(1, json.min_tokens)
  return least === undefined || cap === undefined ? least : Math.min(least, cap)
}

function outputTokens(least: number, value: unknown): number | undefined {
  const tokens = numberAtLeast(least, value)
  return tokens === undefined ? undefined : Math.min(tokens, MAX_OUTPUT_TOKENS)
}

function malformed(message: string): ProxyError {
  return new ProxyError('malformed', message)
}

/** Whether the client wants the usage frame of its stream itself. Engines read words and numbers as a yes, too. */
export function asksForUsage(shape: RequestShape): boolean {
  const wish = shape.streamOptions?.include_usage
  return wish !== undefined && wish !== null && wish !== false
}
