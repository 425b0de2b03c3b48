/** Reads why a generation ended, in the engine's own word, from a frame or a whole answer of each dialect. */
import { asObject } from './failures.ts'

type Members = Readonly<Record<string, unknown>>

function word(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined
}

/** One for each choice that ended here, e.g. `stop`, `length`, `tool_calls`. */
export function openaiFinishes(frame: Members): readonly string[] {
  const finishes: string[] = []
  for (const choice of Array.isArray(frame.choices) ? frame.choices : []) {
    const finish = word(asObject(choice)?.finish_reason)
    if (finish !== undefined) finishes.push(finish)
  }
  return finishes
}

/** Of a `message_delta`, or of a whole message, e.g. `end_turn`, `max_tokens`. */
export function anthropicFinish(frame: Members): string | undefined {
  return word(asObject(frame.delta)?.stop_reason) ?? word(frame.stop_reason)
}

/** Of a response object: why it is incomplete, else its state, e.g. `max_output_tokens`, `completed`. */
export function responsesFinish(response: Members): string | undefined {
  return word(asObject(response.incomplete_details)?.reason) ?? word(response.status)
}

/** Of a TGI generation, e.g. `length`, `eos_token`. */
export function tgiFinish(frame: Members): string | undefined {
  return word(asObject(frame.details)?.finish_reason)
}
