/** Runs the goodput bench's own jobs, small: threads, what they remember, and the estimator that knows. Needs a build. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { within } from '../support/deadline.ts'

interface Cell {
  readonly judged: number
  readonly good: number
  readonly attained: number
  readonly windows: readonly { readonly judged: number }[]
  readonly tenants?: Readonly<Record<string, { readonly judged: number }>>
}
interface Knowing {
  trust(groupId: string): string
  remaining(offer: object, soFarTokens: number): number
}
interface Pool {
  run(job: string, spec: object): Promise<Cell>
  close(): Promise<void>
}
interface Bench {
  readonly Pool: new (options: object) => Pool
  openCache(file: string): object
  readonly Clairvoyant: new (profileId: string, requests: readonly object[]) => Knowing
}

const at = (name: string): URL => new URL(`../../bench/goodput/${name}.mjs`, import.meta.url)
const load = async (name: string): Promise<object> => import(at(name).href)
const bench = Object.assign({}, ...(await Promise.all(['pool', 'cache', 'variants'].map(load)))) as Bench

const folder = mkdtempSync(join(tmpdir(), 'sluice-goodput-run-'))
afterAll(() => rmSync(folder, { recursive: true }))

const SMALL = { profile: 'Llama-3.1-8B/H100-80G-SXM/tp1', replicas: 1, engine: {}, workload: 'mixed' }
const SPEC = { scenario: SMALL, ratePerSec: 8, durationMs: 6000, seed: 1, arm: 'round-robin', setting: {} }

async function withPool<T>(use: (pool: Pool, done: readonly string[]) => Promise<T>): Promise<T> {
  const done: string[] = []
  const pool = new bench.Pool({
    threads: 1,
    workerUrl: at('worker'),
    workerData: {},
    cache: bench.openCache(join(folder, 'cache.jsonl')),
    codeOf: () => 'code',
    onDone: (job: string) => done.push(job),
  })
  try {
    return await within(use(pool, done), 'the jobs of the pool', 15_000)
  } finally {
    await pool.close()
  }
}

describe('the threads', () => {
  it('run a cell once, and remember it over a restart', async () => {
    const first = await withPool(async (pool, done) => {
      const windows = [[0, 6000]]
      const [one, two] = await Promise.all([
        pool.run('cell', { ...SPEC, windows }),
        pool.run('cell', { ...SPEC, windows }),
      ])
      expect(done).toEqual(['cell'])
      expect(one.judged).toBeGreaterThan(10)
      expect(one.windows[0]?.judged).toBeGreaterThan(one.judged)
      expect(one.attained).toBeCloseTo(one.good / one.judged, 9)
      expect(two).toEqual(one)
      return one
    })
    await withPool(async (pool, done) => {
      expect(await pool.run('cell', { ...SPEC, windows: [[0, 6000]] })).toEqual(first)
      expect(done).toEqual([])
    })
  })

  it('tell what failed, and go on', async () => {
    await withPool(async (pool) => {
      const broken = { ...SPEC, scenario: { ...SMALL, workload: 'nonsense' } }
      await expect(pool.run('cell', broken)).rejects.toThrow(/unknown workload "nonsense"/)
      expect((await pool.run('cell', { ...SPEC, seed: 2 })).judged).toBeGreaterThan(10)
    })
  })

  it('count tenants apart, each at its own part of the rate', async () => {
    await withPool(async (pool) => {
      const scenario = { ...SMALL, tenants: ['short-chat', 'long-prompts'] }
      const { tenants = {}, judged } = await pool.run('cell', { ...SPEC, scenario, partRates: [30, 10] })
      const [short = 0, long = 0] = scenario.tenants.map((name) => tenants[name]?.judged)
      expect(short + long).toBe(judged)
      expect(short).toBeGreaterThan(long)
      expect(long).toBeGreaterThan(0)
    })
  })
})

describe('the estimator that knows', () => {
  it('is believed before anything happens, and knows what is still to come', () => {
    const knowing = new bench.Clairvoyant(SMALL.profile, [{ id: 'a', outputTokens: 7 }])
    expect(knowing.trust(SMALL.profile)).toBe('trusted')
    expect(knowing.remaining({ requestId: 'a' }, 3)).toBe(4)
  })
})
