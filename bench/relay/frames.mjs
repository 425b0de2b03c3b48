/** The bytes of a streamed answer: what the upstream sends and what the loader expects, token by token. */

/** Length of the time stamp in each token frame, so that every frame has the same size. */
const STAMP_DIGITS = 13

const frame = (fields) =>
  `data: ${JSON.stringify({ id: 'chatcmpl-bench', object: 'chat.completion.chunk', created: 1, model: 'bench', ...fields })}\n\n`
const delta = (content, extra = {}) =>
  frame({
    choices: [
      { index: 0, delta: { content, ...extra }, logprobs: null, finish_reason: null, token_ids: null },
    ],
    usage: null,
  })

/** Milliseconds of a clock that all processes of this machine share. */
export const sharedNowMs = () => Number(process.hrtime.bigint() / 1000n) / 1000

export const ROLE_FRAME = Buffer.from(delta('', { role: 'assistant' }))
export const DONE_FRAME = Buffer.from('data: [DONE]\n\n')
const STAMP_HOLE = '#'.repeat(STAMP_DIGITS)
const TOKEN_TEMPLATE = Buffer.from(delta(` token ${STAMP_HOLE}`))
const STAMP_AT = TOKEN_TEMPLATE.indexOf(STAMP_HOLE)

/** One token's frame, about 220 bytes, with the instant in it at which it was sent. */
export function tokenFrame(atMs) {
  const bytes = Buffer.from(TOKEN_TEMPLATE)
  bytes.latin1Write(atMs.toFixed(3).slice(-STAMP_DIGITS).padStart(STAMP_DIGITS, '0'), STAMP_AT)
  return bytes
}

export function usageFrame(promptTokens, outputTokens) {
  const usage = {
    prompt_tokens: promptTokens,
    total_tokens: promptTokens + outputTokens,
    completion_tokens: outputTokens,
  }
  return Buffer.from(frame({ choices: [], usage }))
}

/**
 * Checks the body of one answer piece by piece against what was sent, each byte of it but the stamps, which it reads.
 * `onToken(delayMs, nowMs)` gets the time that a token's frame took from the upstream's write to here.
 */
export function bodyChecker(promptTokens, tokens, onToken) {
  const tail = Buffer.concat([usageFrame(promptTokens, tokens), DONE_FRAME])
  const tokenBytes = TOKEN_TEMPLATE.length
  const totalBytes = ROLE_FRAME.length + tokens * tokenBytes + tail.length
  const tokensEnd = ROLE_FRAME.length + tokens * tokenBytes
  let offset = 0
  let stamp = ''
  return {
    totalBytes,
    get complete() {
      return offset === totalBytes
    },
    /** Throws at the first byte that differs. */
    take(bytes) {
      const nowMs = sharedNowMs()
      let at = 0
      while (at < bytes.length) {
        if (offset >= totalBytes) throw new Error(`${bytes.length - at} bytes after the end`)
        let expected
        let from
        if (offset < ROLE_FRAME.length) [expected, from] = [ROLE_FRAME, offset]
        else if (offset < tokensEnd)
          [expected, from] = [TOKEN_TEMPLATE, (offset - ROLE_FRAME.length) % tokenBytes]
        else [expected, from] = [tail, offset - tokensEnd]
        const inStamp = expected === TOKEN_TEMPLATE && from >= STAMP_AT && from < STAMP_AT + STAMP_DIGITS
        const stop =
          expected !== TOKEN_TEMPLATE
            ? expected.length
            : inStamp
              ? STAMP_AT + STAMP_DIGITS
              : from < STAMP_AT
                ? STAMP_AT
                : tokenBytes
        const count = Math.min(stop - from, bytes.length - at)
        if (inStamp) {
          stamp += bytes.latin1Slice(at, at + count)
          if (stamp.length === STAMP_DIGITS) {
            onToken(nowMs - stampMs(stamp, nowMs), nowMs)
            stamp = ''
          }
        } else if (bytes.compare(expected, from, from + count, at, at + count) !== 0) {
          throw new Error(
            `byte ${offset}..${offset + count} differs: ${JSON.stringify(bytes.toString('latin1', at, at + count).slice(0, 160))}`,
          )
        }
        at += count
        offset += count
      }
    },
  }
}

/** The stamp holds the clock's last digits only; what was cut off is the loader's own. */
function stampMs(stamp, nowMs) {
  const span = 10 ** (STAMP_DIGITS - 4)
  const base = Math.floor(nowMs / span) * span
  const value = base + Number(stamp)
  return value > nowMs + span / 2 ? value - span : value
}
