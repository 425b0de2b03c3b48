/** What is measured, each from a fresh start: memory under crowds, and how soon an engine hears that a client has left. */
import { exchange, openPool } from '../../src/load/exchange.ts'
import { nearestRank } from '../../src/sim/nearest-rank.ts'
import { eventually } from '../../test/support/deadline.ts'
import type { Wish } from './engine.ts'
import { type MemoryStage, memoryStage, pause } from './stage.ts'

export interface Figure {
  readonly what: string
  readonly value: number
  readonly unit: 'MiB' | 'KiB each' | 'ms' | 'series more'
  /** What was promised; undefined when nothing was. */
  readonly limit?: number
  readonly note?: string
}

export interface Sizes {
  readonly streams: number
  readonly stalled: number
  readonly idle: number
  readonly names: number
  readonly leavers: number
}

const MIB = 1024 * 1024
/** Ninety thousand names that were kept somewhere, at a hundred bytes each, would be more, in MiB. */
const NAMES_LIVE_LIMIT = 8
/** Garbage comes and goes; a metric's series for each of the names would be more, in MiB. */
const NAMES_RESIDENT_LIMIT = 64
const WAIT_MS = 30_000
/** With ten thousand streams a full collection and a walk over the heap take a while. */
const HOLDINGS_LIMIT_MS = 120_000

export async function memoryOfStreams({ streams }: Sizes): Promise<Figure[]> {
  return staged(async (stage) => {
    await stage.come({ count: streams, wish: 'pace', begun: true })
    const peak = await stage.peakBytes(5000)
    return [{ what: `resident at ${streams} streams`, value: peak / MIB, unit: 'MiB', limit: 250 }]
  })
}

/** Readers that never read: the engine sends half a MiB to each. */
export async function memoryOfStalled({ stalled }: Sizes): Promise<Figure[]> {
  return staged(async (stage) => {
    const held = await stage.sluice.holdings()
    const before = await stage.residentBytes()
    await stage.come({ count: stalled, wish: 'flood', stalled: true })
    const peak = await stage.peakBytes(6000)
    const open = await stage.engine.ask<number>('open')
    const each = (peak - before) / 1024 / stalled
    const { heapBytes, externalBytes } = await stage.sluice.holdings(HOLDINGS_LIMIT_MS)
    const live = (bytes: number) => (bytes / 1024 / stalled).toFixed(1)
    const parts = `live: heap ${live(heapBytes - held.heapBytes)}, buffers ${live(externalBytes - held.externalBytes)}`
    const note = `${open} exchanges open, ${(before / MIB).toFixed(0)} to ${(peak / MIB).toFixed(0)} MiB; ${parts}`
    return [{ what: `each of ${stalled} stalled readers`, value: each, unit: 'KiB each', limit: 64, note }]
  })
}

export async function memoryOfIdle({ idle }: Sizes): Promise<Figure[]> {
  return staged(async (stage) => {
    const before = await stage.residentBytes()
    await stage.come({ count: idle })
    const peak = await stage.peakBytes(2000)
    const open = await stage.gauge('sluice_client_connections')
    const each = (peak - before) / 1024 / idle
    const note = `${open} connections open, ${(before / MIB).toFixed(0)} to ${(peak / MIB).toFixed(0)} MiB`
    return [{ what: `each of ${idle} idle connections`, value: each, unit: 'KiB each', note }]
  })
}

export async function memoryOfNames({ names }: Sizes): Promise<Figure[]> {
  return staged(async (stage) => {
    const pool = openPool(stage.url)
    let sent = 0
    const ask = async (upTo: number) => {
      const never = new AbortController().signal
      while (sent < upTo) {
        sent += 1
        const body = JSON.stringify({ model: `invented-${sent}`, messages: [] })
        const headers = { 'content-type': 'application/json' }
        const request = { path: '/v1/chat/completions', headers, body }
        const { status } = await exchange(pool, request, () => 0, never)
        if (status !== 404) throw new Error(`an invented model got ${status}`)
      }
    }
    const all = (upTo: number) => Promise.all(Array.from({ length: 32 }, () => ask(upTo)))
    // The first tenth grows the heap to its working size.
    await all(names / 10)
    const [before, seriesBefore] = [await stage.residentBytes(), seriesOf(await stage.metrics())]
    const { heapBytes: liveBefore } = await stage.sluice.holdings()
    await all(names)
    const [after, series] = [await stage.residentBytes(), seriesOf(await stage.metrics())]
    const { heapBytes: live } = await stage.sluice.holdings()
    await pool.destroy()
    const note = `${(before / MIB).toFixed(0)} to ${(after / MIB).toFixed(0)} MiB`
    return [
      {
        what: `resident more after ${names} invented models`,
        value: (after - before) / MIB,
        unit: 'MiB',
        limit: NAMES_RESIDENT_LIMIT,
        note,
      },
      { what: 'and live of it', value: (live - liveBefore) / MIB, unit: 'MiB', limit: NAMES_LIVE_LIMIT },
      {
        what: 'and their metrics',
        value: series - seriesBefore,
        unit: 'series more',
        limit: 0,
        note: `${seriesBefore} series before`,
      },
    ]
  })
}

const PHASES: readonly (readonly [phase: string, wish: Wish, stream: boolean, begun: boolean])[] = [
  ['in prefill', 'role', true, false],
  ['before any answer', 'silent', true, false],
  ['in its stream', 'pace', true, true],
  ['of a whole answer', 'silent', false, false],
]
const LEAVE_EVERY_MS = 8

/** From a client's close to the close of its engine's socket, on one clock. */
export async function disconnects({ leavers }: Sizes): Promise<Figure[]> {
  const figures: Figure[] = []
  for (const [phase, wish, stream, begun] of PHASES) {
    figures.push(
      ...(await staged(async (stage) => {
        await stage.come({ count: leavers, wish, stream, begun })
        await eventually(
          'all to be at the engine',
          WAIT_MS,
          async () => (await stage.engine.ask<number>('open')) === leavers,
        )
        const left = await stage.crowd.ask<[string, number][]>('leave', { everyMs: LEAVE_EVERY_MS })
        await eventually(
          'all to be gone',
          WAIT_MS,
          async () => (await stage.engine.ask<number>('open')) === 0,
        )
        const closed = new Map(await stage.engine.ask<[string, number][]>('closed'))
        return delayFigures(`${phase}, ${leavers} at once`, left, closed)
      })),
    )
  }
  figures.push(...(await staged((stage) => waitersLeave(stage, leavers))))
  return figures
}

/** A waiter has no socket at an engine: its line in the log says when it was out of the room. */
async function waitersLeave(stage: MemoryStage, leavers: number): Promise<Figure[]> {
  await stage.come({ count: leavers + 1, wish: 'role', model: 'held' })
  await eventually(
    'all but one to wait',
    WAIT_MS,
    async () => (await stage.gauge('sluice_waiting_requests')) === leavers,
  )
  const left = await stage.crowd.ask<[string, number][]>('leave', { everyMs: LEAVE_EVERY_MS })
  await eventually(
    'the room to be empty',
    WAIT_MS,
    async () => (await stage.gauge('sluice_waiting_requests')) === 0,
  )
  await pause(500)
  const gone = new Map<string, number>()
  for (const line of stage.sluice.out.split('\n')) {
    if (!line.includes('"cancelled"')) continue
    const { time, request_id: id } = JSON.parse(line) as { time: string; request_id: string }
    gone.set(id, Date.parse(time))
  }
  return delayFigures(
    `while it waits, ${leavers} at once`,
    left.filter(([id]) => gone.has(id)),
    gone,
  )
}

function delayFigures(
  what: string,
  left: readonly (readonly [string, number])[],
  ended: ReadonlyMap<string, number>,
): Figure[] {
  const delays = left.map(([id, atMs]) => Math.max(0, (ended.get(id) ?? Number.POSITIVE_INFINITY) - atMs))
  const sorted = Float64Array.from(delays).sort()
  const at = (ratio: number) => nearestRank(sorted, ratio) ?? Number.NaN
  const note = `p50 ${at(0.5).toFixed(1)}, most ${at(1).toFixed(1)}, ${delays.length} clients`
  return [{ what: `a client that leaves ${what}: p99`, value: at(0.99), unit: 'ms', limit: 100, note }]
}

function seriesOf(page: string): number {
  return page.split('\n').filter((line) => line !== '' && !line.startsWith('#')).length
}

async function staged(measure: (stage: MemoryStage) => Promise<Figure[]>): Promise<Figure[]> {
  const stage = await memoryStage()
  try {
    return await measure(stage)
  } finally {
    await stage.close()
  }
}
