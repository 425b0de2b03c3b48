/** A process with one scripted engine whose mood the storm changes. Usage: scripted-replica.ts PORT SEED. */
import { Rng } from '../../src/sim/rng.ts'
import { type EngineScript, perform, type ScriptEnd } from '../support/engine-script.ts'
import { type PageFigures, vllmPage } from '../support/metrics-pages.ts'
import { answers } from '../support/node-child.ts'
import { type ScriptedExchange, scriptedEngine } from '../support/scripted-engine.ts'
import { ANSWER_TOKENS, SLOTS } from './scenario.ts'

/** What it does to requests. */
export type Mood = 'fair' | 'slow' | 'truncating' | 'erring' | 'lying' | 'mute'
/** What its metrics page does. */
export type PageMood = 'fair' | 'lying' | 'failing' | 'hanging' | 'garbled' | 'gone'

const FIRST_TOKEN_MS = 80
const TOKEN_MS = 25
const PROBE_PATH = '/v1/completions'

const [port = 0, seed = 1] = process.argv.slice(2).map(Number)
const rng = new Rng(seed)
const engine = await scriptedEngine({ port })
const queue: ScriptedExchange[] = []
let running = 0
let steps = 0
let mood: Mood = 'fair'

/** As an engine does it: so many at a time, the others behind them in order. */
function take(exchange: ScriptedExchange): void {
  engine.requests.length = 0
  queue.push(exchange)
  pump()
}

function pump(): void {
  while (running < SLOTS) {
    const next = queue.shift()
    if (next === undefined) return
    if (next.closed) continue
    running += 1
    void answer(next).finally(() => {
      running -= 1
      pump()
    })
  }
}

async function answer(exchange: ScriptedExchange): Promise<void> {
  const asked = exchange.json as { readonly stream?: boolean; readonly max_tokens?: number }
  const frames = Math.min(asked.max_tokens ?? ANSWER_TOKENS, ANSWER_TOKENS)
  steps += frames
  if (mood === 'mute') return exchange.waitClosed('somebody to give up', 600_000)
  if (mood === 'erring') {
    exchange.refuse(500)
    return
  }
  const script = scriptOf(mood, frames)
  if (asked.stream === true) return perform(exchange, script)
  await new Promise((resolve) =>
    setTimeout(resolve, (script.firstTokenAfterMs ?? 0) + frames * (script.betweenTokensMs ?? 0)),
  )
  if (script.end === 'reset') exchange.reset()
  else if (script.end !== undefined)
    exchange.head(200, { 'content-length': '4000' }, 'length').write('{').fin()
  else exchange.respondJson(200, wholeAnswer(script, frames))
}

function scriptOf(current: Mood, frames: number): EngineScript {
  const pace = current === 'slow' ? 6 : 1
  const fair = { firstTokenAfterMs: FIRST_TOKEN_MS * pace, betweenTokensMs: TOKEN_MS * pace, frames }
  if (current === 'lying') return { ...fair, usage: 'final', ...lie() }
  if (current !== 'truncating' || rng.uniform() > 0.6) return fair
  const ends: readonly ScriptEnd[] = ['no_done', 'error', 'fin', 'reset']
  const end = ends[rng.integer(ends.length)] ?? 'fin'
  const kept = rng.integer(frames)
  return { ...fair, frames: kept, role: kept > 0, end, usage: 'none' }
}

/** Counts that no engine could mean. */
function lie(): Pick<EngineScript, 'tokensPerFrame' | 'promptTokens'> {
  const lies = [-7, 0, 0.001, 1e5, 1e12]
  const pick = () => lies[rng.integer(lies.length)] ?? 0
  return { tokensPerFrame: pick(), promptTokens: pick() }
}

function wholeAnswer({ promptTokens = 8, tokensPerFrame = 1 }: EngineScript, frames: number): object {
  const usage = { prompt_tokens: promptTokens, completion_tokens: frames * tokensPerFrame }
  const message = { role: 'assistant', content: 'whole' }
  return {
    object: 'chat.completion',
    choices: [{ index: 0, message, text: 'whole', finish_reason: 'stop' }],
    usage,
  }
}

/** Gauges that have nothing to do with the engine, each look another. */
function lyingFigures(): PageFigures {
  const lies: readonly PageFigures[] = [
    { running: 0, waiting: 0, kv: 0, steps: 0 },
    { running: 250, waiting: 900, kv: 1, steps },
    { running: -5, waiting: Number.NaN, kv: 17, steps: -steps },
    { running, waiting: queue.length, kv: 0.1, steps, startSec: 1e9 + rng.integer(1e6) },
  ]
  return lies[rng.integer(lies.length)] ?? {}
}

const PAGES: Readonly<Record<PageMood, () => void>> = {
  fair: () => engine.page(() => vllmPage({ running, waiting: queue.length, kv: running / SLOTS / 2, steps })),
  lying: () => engine.page(() => vllmPage(lyingFigures())),
  failing: () => engine.page('', { status: 500 }),
  hanging: () => engine.on('/metrics', () => {}),
  garbled: () =>
    engine.page('<html>vllm:num_requests_running{ NaN\n\0\0 1e999\n', { contentType: 'text/html' }),
  gone: () => engine.page('', { status: 404 }),
}

for (const path of ['/v1/chat/completions', PROBE_PATH]) engine.on(path, take)
PAGES.fair()
answers({
  mood: (facts: { readonly mood: Mood; readonly page: PageMood }) => {
    mood = facts.mood
    PAGES[facts.page]()
    return true
  },
  open: () => running + queue.filter(({ closed }) => !closed).length,
})
process.stderr.write(`scripted engine on ${engine.url}\n`)
