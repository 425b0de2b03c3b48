/** Holds the parts of bench/vllm.mjs to their words: what counts as good, refused or broken, and seeded arrivals. */
import { createServer, type Server, type ServerResponse } from 'node:http'
import { afterEach, describe, expect, it } from 'vitest'

interface Seen {
  readonly promptTokens: number
  readonly answerTokens: number
  readonly scheduledAtMs: number
  readonly outcome: 'finished' | 'refused' | 'broken' | 'unfinished'
  readonly frames: number
  readonly status?: number
  readonly firstAtMs?: number
  readonly lastAtMs?: number
  readonly className?: string
  readonly slo?: { readonly ttftMs?: number; readonly tpotMs?: number; readonly e2eMs?: number } | null
}
interface Arrival {
  readonly atMs: number
  readonly promptTokens: number
  readonly answerTokens: number
  readonly body: Buffer
  readonly className?: string
}
interface Bench {
  isGood(seen: Seen, tpotTargetMs: number): boolean
  scoreRun(all: readonly Seen[], seconds: number, tpotTargetMs: number): Readonly<Record<string, number>>
  runOpenLoop(port: number, arrivals: readonly Arrival[], graceMs: number): Promise<readonly Seen[]>
  formatMeans(rows: readonly object[]): string
  saturate(port: number, next: () => Arrival, width: number, limitSeconds: number): Promise<number>
  makeArrivals(shape: unknown, ratePerSec: number, seconds: number, seed: number): readonly Arrival[]
  readonly WORKLOADS: Readonly<Record<string, unknown>>
}

const load = async (name: string): Promise<object> =>
  import(new URL(`../../bench/vllm/${name}.mjs`, import.meta.url).href)
const bench = Object.assign({}, await load('score'), await load('client'), await load('workload')) as Bench

const seen: Seen = {
  promptTokens: 1000,
  answerTokens: 11,
  scheduledAtMs: 0,
  outcome: 'finished',
  frames: 11,
  firstAtMs: 2800,
  lastAtMs: 3600,
}

describe('a request on the bench', () => {
  it('is good up to 0.8 s + 2 s per 1000 prompt tokens and the TPOT target, and not beyond', () => {
    expect(bench.isGood(seen, 80)).toBe(true)
    expect(bench.isGood({ ...seen, firstAtMs: 2801 }, 80)).toBe(false)
    expect(bench.isGood({ ...seen, lastAtMs: 3601 }, 80)).toBe(false)
    expect(bench.isGood({ ...seen, promptTokens: 999 }, 80)).toBe(false)
  })

  it('of a class is good by the promise of its class', () => {
    expect(bench.isGood({ ...seen, slo: { ttftMs: 2799 } }, 80)).toBe(false)
    expect(bench.isGood({ ...seen, slo: { ttftMs: 2800 } }, 1)).toBe(true)
    expect(bench.isGood({ ...seen, slo: { e2eMs: 3600 } }, 1)).toBe(true)
    expect(bench.isGood({ ...seen, slo: { e2eMs: 3599 } }, 80)).toBe(false)
  })

  it('without a promise is not judged', () => {
    const row = bench.scoreRun([seen, { ...seen, className: 'batch', slo: null }], 1, 80)
    expect(row).toMatchObject({ offeredPerSec: 2, goodPerSec: 1, goodRatio: 1 })
  })

  it('is never good when it did not finish', () => {
    for (const outcome of ['refused', 'broken', 'unfinished'] as const) {
      expect(bench.isGood({ ...seen, outcome }, 80)).toBe(false)
    }
  })

  it('counts against what was offered', () => {
    const row = bench.scoreRun([seen, { ...seen, outcome: 'refused' }, { ...seen, firstAtMs: 9000 }], 3, 80)
    expect(row).toMatchObject({ offeredPerSec: 1, goodPerSec: 1 / 3, goodRatio: 1 / 3, refused: 1 })
  })
})

describe('means over rounds', () => {
  const rows = [10, 12, 14].flatMap((goodPerSec, round) => [
    { load: 2, round, arm: 'cap:16', goodPerSec },
    { load: 2, round, arm: 'sluice', goodPerSec: goodPerSec + [1, 2, 3][round]! },
  ])

  it('compare on the same arrivals, with the interval of the differences', () => {
    const lines = bench.formatMeans(rows).split('\n')
    // Differences 1, 2, 3: mean 2, deviation 1, t(2) = 4.3, so 4.3 / sqrt(3).
    expect(lines[1]).toMatch(/2x +cap:16 +12\.0 ±5\.0 +2\.0 ±2\.5$/)
    expect(lines[2]).toMatch(/2x +sluice +14\.0 ±7\.5/)
  })

  it('claim no interval from one round', () => {
    expect(bench.formatMeans(rows.slice(0, 2)).split('\n')[1]).toMatch(/10\.0 +1\.0$/)
  })
})

describe('arrivals', () => {
  it('are the same for the same seed, and about as many as the rate says', () => {
    const make = (seed: number) => bench.makeArrivals(bench.WORKLOADS.mixed, 10, 60, seed)
    const written = (seed: number) => make(seed).map(({ atMs, body }) => `${atMs} ${body.toString('latin1')}`)
    const [once, again, other] = [written(1), written(1), written(2)]
    expect(once.every((text, place) => text === again[place])).toBe(true)
    expect(once.every((text, place) => text === other[place])).toBe(false)
    expect(once.length).toBeGreaterThan(500)
    expect(once.length).toBeLessThan(700)
  })

  it('of a mix are of each class in its share', () => {
    const arrivals = bench.makeArrivals(bench.WORKLOADS.classes, 10, 200, 1)
    for (const [name, share] of Object.entries({
      chat: 0.4,
      voice: 0.2,
      autocomplete: 0.25,
      agent: 0.1,
      batch: 0.05,
    })) {
      const own = arrivals.filter(({ className }) => className === name)
      expect(own.length / arrivals.length).toBeGreaterThan(share - 0.03)
      expect(own.length / arrivals.length).toBeLessThan(share + 0.03)
    }
  })

  it('carry exact lengths and never a seed for the engine', () => {
    for (const { body, promptTokens, answerTokens } of bench.makeArrivals(bench.WORKLOADS.mixed, 10, 5, 3)) {
      const sent = JSON.parse(body.toString('utf8')) as Record<string, unknown>
      expect(sent).toMatchObject({ max_tokens: answerTokens, min_tokens: answerTokens, ignore_eos: true })
      expect(sent.prompt).toHaveLength(promptTokens)
      expect(sent).not.toHaveProperty('seed')
    }
  })
})

function portOf(server: Server | undefined): number {
  const address = server?.address()
  if (address === null || typeof address !== 'object') throw new RangeError('the server does not listen')
  return address.port
}

describe('the open-loop client', () => {
  let server: Server | undefined
  afterEach(async () => {
    server?.closeAllConnections()
    await new Promise((done) => (server === undefined ? done(undefined) : server.close(done)))
  })

  /** Answers each request with `answer` and returns what the client made of one request. */
  async function sendTo(
    answer: (response: ServerResponse) => void,
    graceMs: number,
  ): Promise<Seen | undefined> {
    server = createServer((request, response) => {
      request.resume().on('end', () => answer(response))
    })
    await new Promise<void>((done) => server?.listen(0, '127.0.0.1', done))
    const arrival = { atMs: 0, promptTokens: 1, answerTokens: 2, body: Buffer.from('{}') }
    const [first] = await bench.runOpenLoop(portOf(server), [arrival], graceMs)
    return first
  }
  const frame = 'data: {"choices":[{"text":"a"}]}\n\n'
  const done = 'data: [DONE]\n\n'

  it('takes a whole stream as finished, wherever it is cut', async () => {
    const finished = await sendTo((response) => {
      response.write(frame.slice(0, 9))
      response.end(`${frame.slice(9)}${frame}${done}`)
    }, 10_000)
    expect(finished).toMatchObject({ outcome: 'finished', status: 200, frames: 2 })
    expect(finished?.firstAtMs).toBeGreaterThanOrEqual(finished?.scheduledAtMs ?? Number.POSITIVE_INFINITY)
  })

  it('takes a 429, and an error event inside a 200 before any content, as refused', async () => {
    expect(await sendTo((response) => response.writeHead(429).end('{}'), 10_000)).toMatchObject({
      outcome: 'refused',
    })
    server?.close()
    const inside = await sendTo((response) => response.end(`data: {"error":{"code":503}}\n\n${done}`), 10_000)
    expect(inside).toMatchObject({ outcome: 'refused', status: 200 })
  })

  it('takes a stream without its end, or with an error after content, as broken', async () => {
    expect(await sendTo((response) => response.end(frame), 10_000)).toMatchObject({ outcome: 'broken' })
    server?.close()
    const late = await sendTo((response) => response.end(`${frame}data: {"error":{}}\n\n${done}`), 10_000)
    expect(late).toMatchObject({ outcome: 'broken' })
  })

  it('tells a rate from what finishes after the first wave, and none when nothing does', async () => {
    const request = { atMs: 0, promptTokens: 1, answerTokens: 1, body: Buffer.from('{}') }
    let made = 0
    const next = () => {
      made++
      return request
    }
    await sendTo((response) => response.end(`${frame}${done}`), 10_000)
    expect(await bench.saturate(portOf(server), next, 3, 10)).toBeGreaterThan(0)
    expect(made).toBeGreaterThanOrEqual(12)
    server?.close()
    await sendTo((response) => response.writeHead(429).end('{}'), 10_000)
    await expect(bench.saturate(portOf(server), next, 3, 0.3)).rejects.toThrow(/too few finished.*refused/)
  })

  it('leaves what has not ended when the run is over', async () => {
    expect(await sendTo((response) => response.write(frame), 200)).toMatchObject({ outcome: 'unfinished' })
  })
})
