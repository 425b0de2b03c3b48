/** What crowds of clients take of memory, each figure from a fresh start. */
import { exchange, openPool } from '../../src/load/exchange.ts'
import type { CrowdWish } from './crowd.ts'
import { type MemoryStage, staged } from './stage.ts'

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
  /** Clients whose request stops before its end. */
  readonly unfinished: number
  readonly leavers: number
  /** Whether the engine of a reader that takes nothing is soon held up: with small socket buffers. */
  readonly readersStall: boolean
}

const MIB = 1024 * 1024
/** Ninety thousand names that were kept somewhere, at a hundred bytes each, would be more, in MiB. */
const NAMES_LIVE_LIMIT = 8
/** Garbage comes and goes; a metric's series for each of the names would be more, in MiB. */
const NAMES_RESIDENT_LIMIT = 64
/** Room for all bodies, and for a quarter of them, in MiB. */
const ROOMY = 1024
const NARROW = 16
/** Half of a body of 64 KiB. */
const HALF_BODY_BYTES = 32 * 1024
/** With room for all of what 2000 clients send, more than twice as much is resident. */
const NARROW_RESIDENT_LIMIT = 48
/** Buffers that are in use, after a collection: what `limits.buffered` counts, and a quarter for what it doesn't. */
const NARROW_LIVE_LIMIT = NARROW * 1.25
/** Half of what is read of headers before they are refused. */
const HEADER_BYTES = 15 * 1024
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

export function memoryOfIdle({ idle }: Sizes): Promise<Figure[]> {
  return staged(async (stage) => [
    await memoryOfEach(stage, `each of ${idle} idle connections`, { count: idle }),
  ])
}

/** Headers without end. They are refused after 30 s; this looks before that. */
export function memoryOfHeaders({ unfinished: count }: Sizes): Promise<Figure[]> {
  const crowd: CrowdWish = { count, unfinished: { part: 'headers', bytes: HEADER_BYTES } }
  const what = `each of ${count} with ${HEADER_BYTES / 1024} KiB of unfinished headers`
  return staged(async (stage) => [await memoryOfEach(stage, what, crowd)])
}

async function memoryOfEach(stage: MemoryStage, what: string, crowd: CrowdWish): Promise<Figure> {
  const before = await stage.residentBytes()
  await stage.come(crowd)
  const peak = await stage.peakBytes(2000)
  const open = await stage.gauge('sluice_client_connections')
  const each = (peak - before) / 1024 / crowd.count
  const note = `${open} connections open, ${(before / MIB).toFixed(0)} to ${(peak / MIB).toFixed(0)} MiB`
  return { what, value: each, unit: 'KiB each', note }
}

/** Uploads that stop half-way, each looked at after a collection: first with room for all of them, then with less. */
export async function memoryOfUploads({ unfinished }: Sizes): Promise<Figure[]> {
  const [roomy, roomyLive] = await memoryOfHalves(unfinished, ROOMY)
  const [narrow, narrowLive] = await memoryOfHalves(unfinished, NARROW)
  return [
    roomy,
    roomyLive,
    { ...narrow, limit: NARROW_RESIDENT_LIMIT },
    { ...narrowLive, limit: NARROW_LIVE_LIMIT },
  ]
}

function memoryOfHalves(count: number, bufferedMib: number): Promise<[resident: Figure, live: Figure]> {
  const measure = async (stage: MemoryStage): Promise<[Figure, Figure]> => {
    const before = await stage.sluice.holdings()
    await stage.come({ count, unfinished: { part: 'body', bytes: HALF_BODY_BYTES } })
    const peak = await stage.peakBytes(3000)
    const held = await stage.gauge('sluice_buffered_bytes')
    const refused = await stage.gauge('sluice_rejected_requests_total')
    const after = await stage.sluice.holdings()
    const resident = after.rssBytes - before.rssBytes
    const each = (resident / 1024 / count).toFixed(1)
    return [
      {
        what: `resident more with ${count} half uploads, limits.buffered ${bufferedMib} MiB`,
        value: resident / MIB,
        unit: 'MiB',
        note: `${each} KiB each, ${(before.rssBytes / MIB).toFixed(0)} to ${(after.rssBytes / MIB).toFixed(0)} MiB, ${(peak / MIB).toFixed(0)} with garbage`,
      },
      {
        what: 'and live buffers of it',
        value: (after.externalBytes - before.externalBytes) / MIB,
        unit: 'MiB',
        note: `${(held / MIB).toFixed(1)} MiB of bodies, ${refused} refused`,
      },
    ]
  }
  return staged(measure, { buffered: `${bufferedMib}MiB` })
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

function seriesOf(page: string): number {
  return page.split('\n').filter((line) => line !== '' && !line.startsWith('#')).length
}
