/** OpenAI responses in the form of vLLM 0.32. */
import type { AnswerHead, AnswerUsage, FinishReason, FrameWriter, WholeChoice } from './frames.ts'

interface ResponseState {
  readonly status: 'in_progress' | 'completed' | 'incomplete'
  readonly text?: string
  readonly usage?: AnswerUsage
}

/** Event frames of `/v1/responses`; it ends without `[DONE]`. */
export function responsesWriter(head: AnswerHead): FrameWriter {
  const place = { item_id: itemId(head), output_index: 0 }
  let sequence = 0
  let text = ''
  let finish: FinishReason = 'stop'
  const event = (type: string, fields: object) =>
    `event: ${type}\ndata: ${JSON.stringify({ ...fields, sequence_number: sequence++, type })}\n\n`
  const open = () => [
    event('response.created', { response: responseObject(head, { status: 'in_progress' }) }),
    event('response.in_progress', { response: responseObject(head, { status: 'in_progress' }) }),
    event('response.output_item.added', {
      item: { ...itemHead(head), content: [], status: 'in_progress' },
      output_index: 0,
    }),
    event('response.content_part.added', { content_index: 0, ...place, part: textPart('') }),
  ]
  return {
    token(token) {
      const frames = sequence === 0 ? open() : []
      text += token.text
      if (token.finish !== undefined) finish = token.finish
      frames.push(
        event('response.output_text.delta', { content_index: 0, delta: token.text, ...place, logprobs: [] }),
      )
      return frames
    },
    end(usage) {
      const status = finish === 'length' ? 'incomplete' : 'completed'
      return [
        event('response.output_text.done', { content_index: 0, ...place, logprobs: [], text }),
        event('response.content_part.done', { content_index: 0, ...place, part: textPart(text) }),
        event('response.output_item.done', { item: outputItem(head, text), output_index: 0 }),
        event('response.completed', { response: responseObject(head, { status, text, usage }) }),
      ]
    },
  }
}

export function responsesWhole(
  head: AnswerHead,
  choices: readonly WholeChoice[],
  usage: AnswerUsage,
): string {
  const [choice] = choices
  const status = choice?.finish === 'length' ? 'incomplete' : 'completed'
  return JSON.stringify(responseObject(head, { status, text: choice?.text ?? '', usage }))
}

function responseObject(head: AnswerHead, { status, text, usage }: ResponseState) {
  return {
    id: head.id,
    created_at: head.created,
    incomplete_details: status === 'incomplete' ? { reason: 'max_output_tokens' } : null,
    instructions: null,
    metadata: null,
    model: head.model,
    object: 'response',
    output: text === undefined ? [] : [outputItem(head, text)],
    parallel_tool_calls: true,
    temperature: 1,
    tool_choice: 'none',
    tools: [],
    top_p: 1,
    background: false,
    max_output_tokens: head.maxTokens,
    previous_response_id: null,
    reasoning: null,
    service_tier: 'auto',
    status,
    text: null,
    truncation: 'disabled',
    usage: usage === undefined ? null : responseUsage(usage),
    user: null,
  }
}

function responseUsage(usage: AnswerUsage) {
  return {
    input_tokens: usage.promptTokens,
    input_tokens_details: { cached_tokens: usage.cachedTokens, cache_write_tokens: 0 },
    output_tokens: usage.outputTokens,
    output_tokens_details: { reasoning_tokens: 0, tool_output_tokens: 0 },
    total_tokens: usage.promptTokens + usage.outputTokens,
  }
}

function itemId(head: AnswerHead): string {
  return head.id.replace(/^resp_/, 'msg_')
}

function itemHead(head: AnswerHead) {
  return { id: itemId(head), role: 'assistant', type: 'message', phase: null }
}

function outputItem(head: AnswerHead, text: string) {
  return { ...itemHead(head), content: [textPart(text)], status: 'completed' }
}

function textPart(text: string) {
  return { annotations: [], text, type: 'output_text', logprobs: null }
}
