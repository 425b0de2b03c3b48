/** Reads what an engine says of a request's size, in each dialect's own words. */
import type { Draft } from '../core/draft.ts'
import type { Usage } from '../core/events.ts'
import { asObject } from './failures.ts'

function count(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0 ? value : undefined
}

function usage(
  prompt: number | undefined,
  output: number | undefined,
  cached: number | undefined,
): Usage | undefined {
  if (prompt === undefined && output === undefined) return undefined
  const told: Draft<Usage> = {}
  if (prompt !== undefined) told.promptTokens = prompt
  if (output !== undefined) told.outputTokens = output
  if (cached !== undefined) told.cachedTokens = cached
  return told
}

/** `usage` of chat and completions. */
export function openaiUsage(value: unknown): Usage | undefined {
  const it = asObject(value)
  if (it === undefined) return undefined
  const cached = count(asObject(it.prompt_tokens_details)?.cached_tokens)
  return usage(count(it.prompt_tokens), count(it.completion_tokens), cached)
}

/** `usage` of a response object. */
export function responsesUsage(value: unknown): Usage | undefined {
  const it = asObject(value)
  if (it === undefined) return undefined
  const cached = count(asObject(it.input_tokens_details)?.cached_tokens)
  return usage(count(it.input_tokens), count(it.output_tokens), cached)
}

/** `usage` of messages, where `input_tokens` leaves out what the cache gave and took. */
export function anthropicUsage(value: unknown): Usage | undefined {
  const it = asObject(value)
  if (it === undefined) return undefined
  const input = count(it.input_tokens)
  const cached = count(it.cache_read_input_tokens)
  const created = count(it.cache_creation_input_tokens) ?? 0
  const prompt = input === undefined ? undefined : input + (cached ?? 0) + created
  return usage(prompt, count(it.output_tokens), cached)
}

/** `details` of a TGI generation. */
export function tgiUsage(value: unknown): Usage | undefined {
  const it = asObject(value)
  if (it === undefined) return undefined
  const prefill = Array.isArray(it.prefill) && it.prefill.length > 0 ? it.prefill.length : undefined
  return usage(count(it.input_length) ?? prefill, count(it.generated_tokens), undefined)
}

/** Counts as TGI tells them in the headers of a whole answer. */
export function countedUsage(prompt: unknown, output: unknown): Usage | undefined {
  const number = (value: unknown) => (typeof value === 'string' && value !== '' ? Number(value) : undefined)
  return usage(count(number(prompt)), count(number(output)), undefined)
}

/** Later reports win, field by field: some dialects tell the prompt first and the output last. */
export function mergeUsage(older: Usage | undefined, newer: Usage | undefined): Usage | undefined {
  return older === undefined ? newer : newer === undefined ? older : { ...older, ...newer }
}
