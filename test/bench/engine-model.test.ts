/** Holds bench/engine-model.mjs to its word: a server that is the model itself is met without error, in both forms of file. */
import { describe, expect, it } from 'vitest'
import { EngineModel } from '../../src/sim/engine-model.ts'
import { type EngineProfile, profile } from '../../src/sim/profiles.ts'
import { Rng } from '../../src/sim/rng.ts'

interface ErrorRow {
  readonly name: string
  readonly count: number
  readonly medianErrorRatio: number
  readonly p90ErrorRatio: number
  readonly medianRatio: number
}
type Row = Readonly<Record<string, number | string>>
interface Request {
  readonly atMs: number
  readonly promptTokens: number
  readonly outputTokens: number
}
interface Options {
  readonly profile: EngineProfile
  readonly replicas?: number
}
interface Bench {
  parseCsv(text: string): readonly Row[]
  parseStates(file: { readonly name: string; readonly text: string }): readonly Row[]
  checkStates(sim: object, rows: readonly Row[], options: object): readonly ErrorRow[]
  checkShort(sim: object, curves: readonly Row[], optionsOf: () => Options): readonly ErrorRow[]
  checkRequests(sim: object, rows: readonly Row[], optionsOf: () => Options): readonly ErrorRow[]
  replay(
    sim: object,
    requests: readonly Request[],
    options: Options,
  ): readonly { readonly ttftMs: number; readonly tpotMs?: number; readonly endedAtMs: number }[]
}

const load = async (name: string): Promise<object> =>
  import(new URL(`../../bench/engine-model/${name}.mjs`, import.meta.url).href)
const bench = Object.assign({}, await load('measured'), await load('states'), await load('replays')) as Bench

const SIM = { EngineModel, Rng }
const H200 = profile('Qwen3-32B/H200-141G-SXM/tp1')

function expectNoError(rows: readonly ErrorRow[], names: readonly string[]) {
  expect(rows.map(({ name }) => name).toSorted()).toEqual([...names].toSorted())
  for (const { name, p90ErrorRatio } of rows) expect(p90ErrorRatio, name).toBeLessThan(0.01)
}

describe('a replay', () => {
  const requests = Array.from({ length: 40 }, (_, at) => ({
    atMs: at * 70,
    promptTokens: 200 + 37 * at,
    outputTokens: 20 + at,
  }))
  const times = bench.replay(SIM, requests, { profile: H200, replicas: 2 })

  it('of its own answers has no error', () => {
    const rows = requests.map(({ atMs, promptTokens, outputTokens }, at) => ({
      run: 'own',
      qps: 14,
      arrival_s: atMs / 1000,
      prompt_tokens: promptTokens,
      output_tokens: outputTokens,
      ttft_s: times[at]!.ttftMs / 1000,
      generation_s: (times[at]!.endedAtMs - atMs - times[at]!.ttftMs) / 1000,
    }))
    expectNoError(
      bench.checkRequests(SIM, rows, () => ({ profile: H200, replicas: 2 })),
      [
        'TTFT p50, below saturation',
        'TPOT p50, below saturation',
        'time to the last answer, below saturation',
      ],
    )
    const slower = rows.map((row) => ({ ...row, ttft_s: row.ttft_s * 2 }))
    const [ttft] = bench.checkRequests(SIM, slower, () => ({ profile: H200, replicas: 2 }))
    expect(ttft?.medianRatio).toBeCloseTo(0.5, 6)
  })

  it('of a constant rate takes lengths and rate from the curve', () => {
    const sent = Array.from({ length: 20 }, (_, at) => ({
      atMs: at * 500,
      promptTokens: 75,
      outputTokens: 20,
    }))
    const [first] = bench.replay(SIM, sent, { profile: H200, replicas: 2 })
    const curve = {
      run: 'own',
      workload: 'short',
      replicas: 2,
      qps: 2,
      n: 20,
      prompt_p50: 75,
      output_p50: 20,
      ttft_p50_s: first!.ttftMs / 1000,
      ttft_p90_s: first!.ttftMs / 1000,
      itl_p50_ms: first!.tpotMs ?? 0,
    }
    const found = bench.checkShort(SIM, [curve, { ...curve, workload: 'other' }], () => ({ profile: H200 }))
    expectNoError(found, ['TTFT p50', 'TTFT p90', 'TPOT p50'])
  })
})

describe('a state', () => {
  const cold = {
    kv_used: 0,
    prompt_tokens: 10,
    waiting: 0,
    running: 0,
    prefill_tokens_in_flight: 0,
    ttft_ms: 9999,
  }

  it('of an idle server is met exactly, and of a busy one within a step', () => {
    const idleMs = H200.requestOverheadMs + 2.6744 + 0.08394 * 1000 + 3.2367e-6 * 500_000 + 0.5
    const idle = { ...cold, prompt_tokens: 1000, ttft_ms: idleMs }
    const busy = { ...idle, running: 8, kv_used: 0.02, ttft_ms: idleMs + 10 }
    const calm = { ...cold, tpot_ms: H200.decode.baseMs + 0.6, ttft_ms: Number.NaN }
    const found = bench.checkStates(SIM, [cold, idle, busy, calm], { profile: H200, calmOnly: false })
    const of = (name: string) => found.find((row) => row.name === name)
    expect(of('TTFT, idle')?.p90ErrorRatio).toBeLessThan(1e-6)
    expect(of('TTFT, streams running')?.p90ErrorRatio).toBeLessThan(0.15)
    expect(of('TPOT')?.p90ErrorRatio).toBeLessThan(0.01)
    const queued = { ...busy, waiting: 2, prefill_tokens_in_flight: 2000 }
    const names = (rows: readonly Row[], calmOnly: boolean) =>
      bench.checkStates(SIM, rows, { profile: H200, calmOnly }).map(({ name }) => name)
    expect(names([cold, queued], false)).toEqual(['TTFT, prompts ahead'])
    expect(names([cold, queued, { ...queued, waiting: 9 }], true)).toEqual([])
  })

  it('is read from CSV and from the published JSON lines alike', () => {
    const csv = 'kv_used,prompt_tokens,waiting,running,prefix_hit,prefill_tokens_in_flight,ttft_ms,tpot_ms'
    const fromCsv = bench.parseStates({
      name: 'a.csv',
      text: `${csv}\n0.5,48,1,2,0,64,455,\n0.5,48,1,2,0,64,,19.5\n`,
    })
    const published = (ttft: number, tpot: number) =>
      JSON.stringify({
        kv_cache_percentage: 0.5,
        input_token_length: 48,
        num_request_waiting: 1,
        num_request_running: 2,
        prefix_cache_score: 0,
        prefill_tokens_in_flight: 64,
        actual_ttft_ms: ttft,
        actual_tpot_ms: tpot,
      })
    const text = `${published(455, 0)}\n${published(0, 19.5)}\n`
    const fromJson = bench.parseStates({ name: 'a.jsonl', text })
    expect(fromJson).toEqual(fromCsv.map(({ prefix_hit: _, ...row }) => row))
  })

  it('keeps a quoted remark of a curve in its column', () => {
    expect(bench.parseCsv('run,routing,n\na,"x, y",3\n')).toEqual([{ run: 'a', routing: '"x, y"', n: 3 }])
  })
})
