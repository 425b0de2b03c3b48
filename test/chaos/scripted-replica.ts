/** A process with one scripted engine whose mood the storm changes. Usage: scripted-replica.ts PORT SEED. */
import { EngineError } from '../../src/emulator/errors.ts'
import type { AnswerUsage } from '../../src/emulator/frames.ts'
import { Rng } from '../../src/sim/rng.ts'
import { ANSWER_FORMS, ANSWER_HEAD } from '../support/answer-forms.ts'
import { GENERATION_PATHS, type GenerationPath } from '../support/generation-paths.ts'
import { type PageFigures, vllmPage } from '../support/metrics-pages.ts'
import { answers } from '../support/node-child.ts'
import { type ScriptedExchange, scriptedEngine } from '../support/scripted-engine.ts'
import { ANSWER_TOKENS, SLOTS } from './scenario.ts'

/** What it does to requests. */
export type Mood = 'fair' | 'slow' | 'truncating' | 'erring' | 'lying' | 'mute'
/** What its metrics page does. */
export type PageMood = 'fair' | 'lying' | 'failing' | 'hanging' | 'garbled' | 'gone'

/** `done` is the good end; the others leave something out or break the socket. */
type End = 'done' | 'no_done' | 'error' | 'fin' | 'reset'

interface Plan {
  readonly firstTokenMs: number
  readonly tokenMs: number
  readonly tokens: number
  readonly end: End
  readonly usage: AnswerUsage
}

const FIRST_TOKEN_MS = 80
const TOKEN_MS = 25
const BAD_ENDS: readonly End[] = ['no_done', 'error', 'fin', 'reset']
const DIED = new EngineError(500, 'InternalServerError', 'worker died')

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
  const tokens = Math.min(asked.max_tokens ?? ANSWER_TOKENS, ANSWER_TOKENS)
  steps += tokens
  if (mood === 'mute') return exchange.waitClosed('somebody to give up', 600_000)
  if (mood === 'erring') {
    exchange.refuse(500)
    return
  }
  const plan = planOf(mood, tokens)
  if (asked.stream === true) return stream(exchange, plan)
  await pause(plan.firstTokenMs + tokens * plan.tokenMs)
  if (plan.end === 'reset') exchange.reset()
  else if (plan.end !== 'done') exchange.head(200, { 'content-length': '4000' }, 'length').write('{').fin()
  else exchange.respond(200, wholeAnswer(exchange, plan), { 'content-type': 'application/json' })
}

function planOf(current: Mood, tokens: number): Plan {
  const pace = current === 'slow' ? 6 : 1
  const times = { firstTokenMs: FIRST_TOKEN_MS * pace, tokenMs: TOKEN_MS * pace }
  const usage = { promptTokens: 8, outputTokens: tokens, cachedTokens: 0 }
  const fair: Plan = { ...times, tokens, end: 'done', usage }
  if (current === 'lying') return { ...fair, usage: lie(tokens) }
  if (current !== 'truncating' || rng.uniform() > 0.6) return fair
  const end = BAD_ENDS[rng.integer(BAD_ENDS.length)] ?? 'fin'
  return { ...fair, tokens: rng.integer(tokens), end }
}

/** Counts that no engine could mean. */
function lie(tokens: number): AnswerUsage {
  const lies = [-7, 0, 0.001, 1e5, 1e12]
  const pick = () => lies[rng.integer(lies.length)] ?? 0
  return { promptTokens: pick(), outputTokens: tokens * pick(), cachedTokens: 0 }
}

async function stream(exchange: ScriptedExchange, { end, usage, ...plan }: Plan): Promise<void> {
  const form = formOf(exchange)
  const writer = form.writer(ANSWER_HEAD)
  const write = (frames: readonly string[]) => {
    for (const frame of frames) exchange.write(frame)
  }
  exchange.head()
  await pause(plan.firstTokenMs)
  for (let at = 1; at <= plan.tokens && !exchange.closed; at += 1) {
    if (at > 1) await pause(plan.tokenMs)
    const finish =
      at === plan.tokens && (end === 'done' || end === 'no_done') ? { finish: 'stop' as const } : {}
    write(writer.token({ choice: 0, text: ` t${at}`, ...finish }, usage))
  }
  if (end === 'fin' || end === 'reset') {
    exchange[end]()
    return
  }
  if (end === 'error') write(form.failure(DIED))
  if (end === 'done') write(writer.end(usage))
  exchange.end()
}

function wholeAnswer(exchange: ScriptedExchange, { usage }: Plan): string {
  return formOf(exchange).whole(ANSWER_HEAD, [{ text: 'whole', finish: 'stop' }], usage)
}

function formOf({ path }: ScriptedExchange) {
  return ANSWER_FORMS[path as GenerationPath]
}

function pause(forMs: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, forMs))
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

for (const path of GENERATION_PATHS) engine.on(path, take)
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
