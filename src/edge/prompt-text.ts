/** Renders what a prompt says into one text, near enough to the engine's template to count and to recognise it. */
import { isObject, type JsonObject, listOf, stringOf } from './json.ts'

/** A prompt as rendered: text, or token ids; media parts are counted and never rendered. */
export interface Rendered {
  readonly text: string
  readonly mediaParts: number
}

/** Collects the pieces of one prompt in the order in which a template puts them. */
export class PromptWriter {
  #pieces: string[] = []
  mediaParts = 0

  text(text: string): void {
    this.#pieces.push(text, '\n')
  }

  /** Tools and schemas: templates print them as JSON. */
  json(value: unknown): void {
    if (value !== undefined && value !== null) this.text(JSON.stringify(value))
  }

  /** A message's content: a text, or a list of parts. */
  content(content: unknown): void {
    if (typeof content === 'string') this.text(content)
    else for (const part of listOf(content)) this.#part(part)
  }

  /** A chat message, an Anthropic message or an item of a Responses input. */
  message(message: unknown): void {
    if (typeof message === 'string') this.text(message)
    if (!isObject(message)) return
    this.text(stringOf(message.role) ?? stringOf(message.type) ?? '')
    this.content(message.content)
    this.content(message.output)
    if (typeof message.arguments === 'string') this.text(message.arguments)
    this.json(message.tool_calls)
  }

  done(): Rendered {
    return { text: this.#pieces.join(''), mediaParts: this.mediaParts }
  }

  #part(part: unknown): void {
    const text = isObject(part) ? textOf(part) : stringOf(part)
    if (text !== undefined) this.text(text)
    else if (!isObject(part)) return
    else if (part.type === 'tool_result') this.content(part.content)
    else if (part.type === 'tool_use') this.json(part.input)
    else this.mediaParts++
  }
}

function textOf(part: JsonObject): string | undefined {
  return stringOf(part.text) ?? stringOf(part.thinking) ?? stringOf(part.refusal)
}
