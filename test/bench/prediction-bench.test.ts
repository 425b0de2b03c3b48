/** Holds the parts of bench/prediction.mjs to their words: rows in both forms, what was known when, and the figures. */
import { describe, expect, it } from 'vitest'

interface Row {
  readonly kind: 'ttft' | 'tpot'
  readonly observedMs: number
  readonly promptTokens: number
  readonly waiting: number
  readonly running: number
  readonly backlogTokens: number
  readonly contextTokens: number
  readonly sequences: number
}
interface Said {
  readonly p50?: number
  readonly p80?: number
  readonly p95?: number
}
interface Prediction {
  readonly kind: Row['kind']
  readonly observedMs: number
  readonly said: Said
  readonly seen: number
}
interface Figures {
  readonly medianError: number
  readonly p90Error: number
  readonly coverage: Said
}
interface Bench {
  parseCsv(text: string): readonly Row[]
  parseJsonLines(text: string): readonly Row[]
  replay(
    rows: readonly Pick<Row, 'kind' | 'observedMs' | 'waiting' | 'running'>[],
    predictor: { predict(row: unknown): Said; learn(row: unknown, said: Said): void },
    asKnownAtDispatch: boolean,
  ): readonly Prediction[]
  score(predictions: readonly Prediction[], named: object): { ttft?: Figures; tpot?: Figures }
  leastSquares(rows: readonly (readonly number[])[], values: readonly number[]): readonly number[]
}

const load = async (name: string): Promise<object> =>
  import(new URL(`../../bench/prediction/${name}.mjs`, import.meta.url).href)
const bench = Object.assign(
  {},
  await load('rows'),
  await load('replay'),
  await load('score'),
  await load('arithmetic'),
) as Bench

describe('the rows', () => {
  it('are the same in both forms', () => {
    const csv = [
      'kv_used,prompt_tokens,waiting,running,prefix_hit,prefill_tokens_in_flight,ttft_ms,tpot_ms',
      '0.5,700,3,9,0,1920,812,',
      '0.25,40,0,2,0,0,,19.5',
      '',
    ].join('\n')
    const state = { prefix_cache_score: 0, num_tokens_generated: 0 }
    const json = [
      {
        ...state,
        kv_cache_percentage: 0.5,
        input_token_length: 700,
        num_request_waiting: 3,
        num_request_running: 9,
        prefill_tokens_in_flight: 1920,
        actual_ttft_ms: 812,
        actual_tpot_ms: 0,
      },
      {
        ...state,
        kv_cache_percentage: 0.25,
        input_token_length: 40,
        num_request_waiting: 0,
        num_request_running: 2,
        actual_ttft_ms: 0,
        actual_tpot_ms: 19.5,
      },
    ]
    const rows = bench.parseCsv(csv)
    expect(bench.parseJsonLines(json.map((row) => JSON.stringify(row)).join('\n'))).toEqual(rows)
    expect(rows[0]).toMatchObject({ kind: 'ttft', observedMs: 812, sequences: 6, backlogTokens: 1920 })
    expect(rows[1]).toMatchObject({ kind: 'tpot', observedMs: 19.5, sequences: 2 })
    expect(rows[1]?.contextTokens).toBeCloseTo((rows[0]?.contextTokens ?? 0) / 2, 6)
  })

  it('are refused when they say nothing', () => {
    expect(() => bench.parseCsv('kv_used,prompt_tokens\n0,1')).toThrow('no column waiting')
    const head = 'kv_used,prompt_tokens,waiting,running,prefix_hit,prefill_tokens_in_flight,ttft_ms,tpot_ms'
    expect(() => bench.parseCsv(`${head}\n0,1,0,0,0,0,,`)).toThrow('a row without latency')
  })
})

describe('the replay', () => {
  const rows = Array.from({ length: 40 }, (_, i) => ({
    kind: 'ttft' as const,
    observedMs: 1 + i,
    waiting: i === 30 ? 4 : 0,
    running: 9,
  }))
  /** Says how many rows it has learnt. */
  const counting = () => {
    let learnt = 0
    return {
      predict: () => ({ p50: learnt }),
      learn: () => {
        learnt++
      },
    }
  }

  it('predicts each row before it is learnt', () => {
    const said = bench.replay(rows, counting(), false)
    expect(said.map((one) => one.said.p50)).toEqual(rows.map((_, i) => i))
  })

  it('knows at dispatch only what had come before those ahead in the queue', () => {
    const said = bench.replay(rows, counting(), true)
    expect(said[30]?.said.p50).toBe(30 - 4 * 5)
    expect(said[31]?.said.p50).toBe(31 - 4)
    expect(said[2]?.said.p50).toBe(0)
  })
})

describe('the figures', () => {
  it('are of relative errors and of quantiles that held, after the first 200', () => {
    const predictions = Array.from({ length: 300 }, (_, seen) => ({
      kind: 'ttft' as const,
      observedMs: 100,
      said: seen < 200 ? { p50: 1, p80: 1, p95: 1 } : { p50: seen % 2 ? 90 : 130, p80: 120, p95: 99 },
      seen,
    }))
    const { ttft, tpot } = bench.score(predictions, {})
    expect(ttft?.medianError).toBeCloseTo(0.1, 9)
    expect(ttft?.p90Error).toBeCloseTo(0.3, 9)
    expect(ttft?.coverage).toEqual({ p50: 0.5, p80: 1, p95: 0 })
    expect(tpot).toBeUndefined()
  })

  it('fit a line exactly where there is one', () => {
    const rows = Array.from({ length: 30 }, (_, i) => [1, i, (i * 7) % 11])
    const values = rows.map(([, a = 0, b = 0]) => 50 + 3 * a + 0.5 * b)
    const [base = 0, first = 0, second = 0] = bench.leastSquares(rows, values)
    expect(base).toBeCloseTo(50, 4)
    expect(first).toBeCloseTo(3, 5)
    expect(second).toBeCloseTo(0.5, 4)
  })
})
