/** Chat and text completions in the form of vLLM 0.32. */
import {
  type AnswerHead,
  type AnswerToken,
  type AnswerUsage,
  DONE_FRAME,
  FINGERPRINT,
  type FrameWriter,
  type WholeChoice,
} from './frames.ts'

/** `usage` of a whole answer and of a stream's last frame differ in their details. */
function usageFields({ promptTokens, outputTokens }: AnswerUsage) {
  return {
    prompt_tokens: promptTokens,
    total_tokens: promptTokens + outputTokens,
    completion_tokens: outputTokens,
  }
}

function wholeUsage(head: AnswerHead, usage: AnswerUsage, created: number | null) {
  const details = {
    cached_tokens: usage.cachedTokens,
    created_cache_tokens: created,
    multimodal_tokens: null,
  }
  return {
    ...usageFields(usage),
    prompt_tokens_details: head.promptTokensDetails ? details : null,
    completion_tokens_details: null,
  }
}

function streamUsage(head: AnswerHead, usage: AnswerUsage, extra: object): string {
  const details = head.promptTokensDetails
    ? { prompt_tokens_details: { cached_tokens: usage.cachedTokens, ...extra } }
    : {}
  return JSON.stringify({ ...usageFields(usage), ...details })
}

/** Frames of `/v1/chat/completions`: the role comes with the first token, never before. */
export function chatWriter(head: AnswerHead): FrameWriter {
  const start = `data: {"id":${JSON.stringify(head.id)},"object":"chat.completion.chunk","created":${head.created},"model":${JSON.stringify(head.model)},"choices":[`
  let opened = false
  let finishedChoices = 0
  const running = (usage: AnswerUsage) =>
    head.continuousUsage
      ? `,"usage":${JSON.stringify({ ...usageFields(usage), completion_tokens_details: null })}`
      : ''
  const roleFrame = (choice: number, usage: AnswerUsage) =>
    `${start}{"index":${choice},"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]${running({ ...usage, outputTokens: 0 })},"prompt_token_ids":null,"prompt_text":null}\n\n`
  return {
    token({ choice, text, finish }: AnswerToken, usage: AnswerUsage) {
      const roles = opened ? 0 : head.choices
      opened = true
      const frames = Array.from({ length: roles }, (_, index) => roleFrame(index, usage))
      if (finish !== undefined) finishedChoices++
      const reason = finish === undefined ? 'null' : `"${finish}","stop_reason":null`
      const isLast = finishedChoices === head.choices && finish !== undefined && !head.includeUsage
      const print = isLast ? `,"system_fingerprint":"${FINGERPRINT}"` : ''
      frames.push(
        `${start}{"index":${choice},"delta":{"content":"${text}"},"logprobs":null,"finish_reason":${reason},"token_ids":null}]${running(usage)}${print}}\n\n`,
      )
      return frames
    },
    end(usage) {
      if (!head.includeUsage) return [DONE_FRAME]
      const sizes = streamUsage(head, usage, { created_cache_tokens: 0 })
      return [`${start}],"usage":${sizes},"system_fingerprint":"${FINGERPRINT}"}\n\n`, DONE_FRAME]
    },
  }
}

/** Frames of `/v1/completions`. */
export function completionWriter(head: AnswerHead): FrameWriter {
  const start = `data: {"id":${JSON.stringify(head.id)},"object":"text_completion","created":${head.created},"model":${JSON.stringify(head.model)},"choices":[`
  let finishedChoices = 0
  return {
    token({ choice, text, finish }, usage) {
      if (finish !== undefined) finishedChoices++
      const reason = finish === undefined ? 'null' : `"${finish}"`
      const isLast = finishedChoices === head.choices && finish !== undefined && !head.includeUsage
      const print = isLast ? `,"system_fingerprint":"${FINGERPRINT}"` : ''
      const sizes = head.continuousUsage ? `,"usage":${JSON.stringify(usageFields(usage))}` : ''
      return [
        `${start}{"index":${choice},"text":"${text}","logprobs":null,"finish_reason":${reason},"stop_reason":null,"prompt_token_ids":null,"token_ids":null}]${sizes}${print}}\n\n`,
      ]
    },
    end(usage) {
      if (!head.includeUsage) return [DONE_FRAME]
      const sizes = streamUsage(head, usage, {})
      return [`${start}],"usage":${sizes},"system_fingerprint":"${FINGERPRINT}"}\n\n`, DONE_FRAME]
    },
  }
}

export function chatWhole(head: AnswerHead, choices: readonly WholeChoice[], usage: AnswerUsage): string {
  return JSON.stringify({
    id: head.id,
    object: 'chat.completion',
    created: head.created,
    model: head.model,
    choices: choices.map(({ text, finish }, index) => ({
      index,
      message: {
        role: 'assistant',
        content: text,
        refusal: null,
        annotations: null,
        audio: null,
        function_call: null,
        reasoning: null,
      },
      logprobs: null,
      finish_reason: finish,
      stop_reason: null,
      token_ids: null,
      routed_experts: null,
    })),
    service_tier: null,
    system_fingerprint: FINGERPRINT,
    usage: wholeUsage(head, usage, 0),
    prompt_logprobs: null,
    prompt_token_ids: null,
    prompt_text: null,
    kv_transfer_params: null,
    ec_transfer_params: null,
    metrics: null,
  })
}

export function completionWhole(
  head: AnswerHead,
  choices: readonly WholeChoice[],
  usage: AnswerUsage,
): string {
  return JSON.stringify({
    id: head.id,
    object: 'text_completion',
    created: head.created,
    model: head.model,
    choices: choices.map(({ text, finish }, index) => ({
      index,
      text,
      logprobs: null,
      finish_reason: finish,
      stop_reason: null,
      token_ids: null,
      prompt_logprobs: null,
      prompt_token_ids: null,
      routed_experts: null,
    })),
    service_tier: null,
    system_fingerprint: FINGERPRINT,
    usage: wholeUsage(head, usage, null),
    kv_transfer_params: null,
    ec_transfer_params: null,
    metrics: null,
  })
}
