/** An engine's whole answer as a plan: what it sends, how fast, cut how, and how it ends. */
import type { CutPlan, FrameStyle, ScriptedExchange } from './scripted-exchange.ts'

export type TokenKind = 'content' | 'reasoning' | 'reasoning_content' | 'tool_call'

/** `done` is the good end; the others leave something out or break the socket. */
export type ScriptEnd = 'done' | 'no_done' | 'error' | 'fin' | 'reset' | 'hang'

export interface EngineScript {
  readonly headersAfterMs?: number
  readonly firstTokenAfterMs?: number
  readonly betweenTokensMs?: number
  readonly role?: boolean
  /** Content frames; 3 unless told otherwise. */
  readonly frames?: number
  /** Tokens that the usage says each frame has. */
  readonly tokensPerFrame?: number
  /** Tokens that the usage says the prompt has. */
  readonly promptTokens?: number
  readonly kind?: TokenKind
  /** `asked` follows the request; `continuous` puts it into each frame as well. */
  readonly usage?: 'asked' | 'final' | 'continuous' | 'none'
  readonly style?: FrameStyle
  /** A comment behind every frame of that number. */
  readonly commentEvery?: number
  /** All frames that are due at one time leave in one write. */
  readonly together?: boolean
  readonly cut?: CutPlan
  readonly gzip?: boolean
  readonly end?: ScriptEnd
}

const PROMPT_TOKENS = 8

/** Answers with the plan, as `engine.on(path, play({...}))` or with a request in hand. */
export function play(script: EngineScript = {}): (exchange: ScriptedExchange) => void {
  return (exchange) => void perform(exchange, script)
}

/** The same; resolves when the last of it was sent. */
export async function perform(exchange: ScriptedExchange, script: EngineScript): Promise<void> {
  const { frames = 3, betweenTokensMs = 0 } = script
  exchange.style = script.style ?? {}
  exchange.cut = script.cut ?? 'whole'
  exchange.gzip = script.gzip === true
  await pause(script.headersAfterMs)
  exchange.head()
  await pause(script.firstTokenAfterMs)
  const send = (from: number, to: number) => {
    if (from === 0 && script.role !== false) exchange.role()
    for (let index = from; index < to; index += 1) sendFrame(exchange, script, index)
  }
  if (betweenTokensMs === 0) {
    if (script.together === true) exchange.together(() => send(0, frames))
    else send(0, frames)
  } else {
    for (let index = 0; index < frames && !exchange.closed; index += 1) {
      if (index > 0) await pause(betweenTokensMs)
      send(index, index + 1)
    }
  }
  finish(exchange, script, frames)
}

function sendFrame(exchange: ScriptedExchange, script: EngineScript, index: number): void {
  const { tokensPerFrame = 1, commentEvery, kind = 'content', usage } = script
  const counted = usage === 'continuous' ? (index + 1) * tokensPerFrame : undefined
  exchange.delta(deltaOf(kind, index), counted === undefined ? {} : { usage: usageOf(counted) })
  if (commentEvery !== undefined && index % commentEvery === 0) exchange.comment()
}

function finish(exchange: ScriptedExchange, script: EngineScript, frames: number): void {
  const { end = 'done', usage = 'asked', tokensPerFrame = 1, promptTokens = PROMPT_TOKENS } = script
  if (end === 'hang') return
  if (end === 'fin' || end === 'reset') {
    exchange[end]()
    return
  }
  if (end === 'error') {
    exchange.error(500, 'worker died').done()
    return
  }
  exchange.finish()
  const asked = (exchange.json.stream_options as { include_usage?: unknown } | undefined)?.include_usage
  if (usage !== 'none' && (usage !== 'asked' || asked === true)) {
    exchange.usage(promptTokens, frames * tokensPerFrame)
  }
  if (end === 'done') exchange.done()
  else exchange.end()
}

function deltaOf(kind: TokenKind, index: number): object {
  if (kind !== 'tool_call') return { [kind]: ` t${index}` }
  const named =
    index === 0 ? { id: 'call-1', type: 'function', function: { name: 'look_up', arguments: '' } } : {}
  return { tool_calls: [{ index: 0, function: { arguments: `${index}` }, ...named }] }
}

function usageOf(completionTokens: number): object {
  return {
    prompt_tokens: PROMPT_TOKENS,
    total_tokens: PROMPT_TOKENS + completionTokens,
    completion_tokens: completionTokens,
  }
}

async function pause(delayMs = 0): Promise<void> {
  if (delayMs > 0) await new Promise((resolve) => setTimeout(resolve, delayMs))
}
