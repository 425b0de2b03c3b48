/** Reads an OpenAI-style event stream as a client does: when content came, how much, and how it ended. */
import { createParser } from 'eventsource-parser'
import type { Usage } from '../core/events.ts'
import type { Ms } from '../core/units.ts'

/** What a stream has shown so far. Instants are the caller's. */
export interface StreamView {
  firstTokenAtMs?: Ms
  lastTokenAtMs?: Ms
  /** Frames with generated content: text, reasoning or a tool call. */
  contentEvents: number
  usage?: Usage
  /** The end marker has been seen. */
  done: boolean
  /** A choice has said why it ended, and nothing generated came behind that. */
  finished: boolean
  /** An error told inside the stream; `code` is the engine's own when it gave one. */
  error?: { readonly code?: number | string; readonly message: string }
}

export interface StreamReader {
  readonly view: StreamView
  feed(bytes: Uint8Array, nowMs: Ms): void
}

/** Whether it was told to its end, as Sluice's own accounts have it: a message that says why it ended needs no marker. */
export function isWhole({ done, finished, error }: StreamView): boolean {
  return (done || finished) && error === undefined
}

/** Makes a reader for one stream of chat or text completions. */
export function createStreamReader(): StreamReader {
  const view: StreamView = { contentEvents: 0, done: false, finished: false }
  const decoder = new TextDecoder()
  let feedAtMs = 0
  const parser = createParser({ onEvent: (event) => readFrame(view, event.data, feedAtMs) })
  return {
    view,
    feed(bytes, nowMs) {
      feedAtMs = nowMs
      parser.feed(decoder.decode(bytes, { stream: true }))
    },
  }
}

interface Choice {
  readonly finish_reason?: string | null
  readonly text?: string | null
  readonly delta?: {
    readonly content?: string | null
    readonly reasoning?: string | null
    readonly reasoning_content?: string | null
    readonly refusal?: string | null
    readonly tool_calls?: readonly unknown[] | null
    readonly function_call?: object | null
  } | null
}

interface Frame {
  readonly choices?: readonly (Choice | null)[] | null
  readonly usage?: Parameters<typeof usageFrom>[0] | null
  readonly error?: { readonly code?: unknown; readonly message?: unknown } | string
}

function readFrame(view: StreamView, text: string, nowMs: Ms): void {
  if (text === '[DONE]') {
    view.done = true
    return
  }
  const frame = parseFrame(text)
  if (frame === undefined) {
    view.error ??= { message: `a frame that is no JSON: ${text.slice(0, 80)}` }
    return
  }
  if (frame.error !== undefined && frame.error !== null) view.error ??= errorFrom(frame.error)
  if (frame.choices?.some(hasContent)) {
    view.firstTokenAtMs ??= nowMs
    view.lastTokenAtMs = nowMs
    view.contentEvents++
    view.finished = false
  }
  if (frame.choices?.some((choice) => Boolean(choice?.finish_reason))) view.finished = true
  if (frame.usage !== undefined && frame.usage !== null) view.usage = usageFrom(frame.usage)
}

function parseFrame(text: string): Frame | undefined {
  try {
    const frame: unknown = JSON.parse(text)
    return typeof frame === 'object' && frame !== null ? frame : undefined
  } catch {
    return undefined
  }
}

/** True when a choice holds something generated; the frame that only names the role does not count. */
function hasContent(choice: Choice | null): boolean {
  const { text, delta } = choice ?? {}
  return (
    Boolean(text) ||
    Boolean(delta?.content) ||
    Boolean(delta?.reasoning) ||
    Boolean(delta?.reasoning_content) ||
    Boolean(delta?.refusal) ||
    Boolean(delta?.function_call) ||
    (delta?.tool_calls?.length ?? 0) > 0
  )
}

function errorFrom(error: NonNullable<Frame['error']>): NonNullable<StreamView['error']> {
  if (typeof error === 'string') return { message: error }
  const message = typeof error.message === 'string' ? error.message : 'no message'
  const { code } = error
  return typeof code === 'number' || typeof code === 'string' ? { code, message } : { message }
}

/** The engine's own count of a request, from its `usage` object. */
function usageFrom(usage: {
  readonly prompt_tokens?: number
  readonly completion_tokens?: number
  readonly prompt_tokens_details?: { readonly cached_tokens?: number } | null
}): Usage {
  const cachedTokens = usage.prompt_tokens_details?.cached_tokens
  return {
    ...(usage.prompt_tokens === undefined ? {} : { promptTokens: usage.prompt_tokens }),
    ...(usage.completion_tokens === undefined ? {} : { outputTokens: usage.completion_tokens }),
    ...(cachedTokens === undefined ? {} : { cachedTokens }),
  }
}
