/** Anthropic messages in the form of vLLM 0.32. */
import type { AnswerHead, AnswerUsage, FinishReason, FrameWriter, WholeChoice } from './frames.ts'

const STOP_REASONS: Readonly<Record<FinishReason, string>> = { stop: 'end_turn', length: 'max_tokens' }

/** Event frames of `/v1/messages`; it ends without `[DONE]`. */
export function messagesWriter(head: AnswerHead): FrameWriter {
  let opened = false
  let finish: FinishReason = 'stop'
  const open = (usage: AnswerUsage) => [
    event('message_start', {
      message: {
        id: head.id,
        type: 'message',
        role: 'assistant',
        content: [],
        model: head.model,
        stop_reason: null,
        stop_sequence: null,
        usage: { input_tokens: usage.promptTokens, output_tokens: 0 },
      },
    }),
    event('content_block_start', { content_block: { type: 'text', text: '' }, index: 0 }),
  ]
  return {
    token(token, usage) {
      const frames = opened ? [] : open(usage)
      opened = true
      if (token.finish !== undefined) finish = token.finish
      frames.push(event('content_block_delta', { delta: { type: 'text_delta', text: token.text }, index: 0 }))
      return frames
    },
    end(usage) {
      return [
        event('content_block_stop', { index: 0 }),
        event('message_delta', {
          delta: { stop_reason: STOP_REASONS[finish], stop_sequence: null },
          usage: messageUsage(usage),
        }),
        event('message_stop', {}),
      ]
    },
  }
}

export function messagesWhole(head: AnswerHead, choices: readonly WholeChoice[], usage: AnswerUsage): string {
  const [choice] = choices
  return JSON.stringify({
    id: head.id,
    type: 'message',
    role: 'assistant',
    content: [{ type: 'text', text: choice?.text ?? '' }],
    model: head.model,
    stop_reason: STOP_REASONS[choice?.finish ?? 'stop'],
    usage: messageUsage(usage),
  })
}

function messageUsage(usage: AnswerUsage) {
  return {
    input_tokens: usage.promptTokens,
    output_tokens: usage.outputTokens,
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: usage.cachedTokens,
  }
}

function event(type: string, fields: object): string {
  return `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`
}
