/** Captured streams and pages of real engines, read from the fixtures. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Dialect, StreamTap, TapEvent } from '../../src/engines/adapter.ts'

const ROOT = join(import.meta.dirname, '..', 'fixtures', 'engines')

export const VLLM = 'vllm-0.32.0'

export interface Capture {
  readonly name: string
  readonly dialect: Dialect
  readonly bytes: Buffer
}

export function fixture(path: string): Buffer {
  return readFileSync(join(ROOT, path))
}

function dialectOf(file: string): Dialect {
  if (file.startsWith('messages')) return 'anthropic'
  if (file.startsWith('responses')) return 'responses'
  return file.includes('generate') ? 'tgi' : 'openai'
}

/** Every captured stream. */
export function captures(): readonly Capture[] {
  return readdirSync(ROOT).flatMap((engine) =>
    readdirSync(join(ROOT, engine))
      .filter((file) => file.endsWith('.sse'))
      .map((file) => ({
        name: `${engine}/${file}`,
        dialect: dialectOf(file),
        bytes: fixture(`${engine}/${file}`),
      })),
  )
}

/** Cuts bytes at the given offsets (any order, any range). */
export function cutAt(bytes: Buffer, offsets: readonly number[]): Buffer[] {
  const cuts = [...new Set(offsets.map((offset) => offset % (bytes.length + 1)))].sort((a, b) => a - b)
  return [0, ...cuts].map((from, index) => bytes.subarray(from, cuts[index] ?? bytes.length))
}

export interface Tapped {
  readonly out: Buffer
  readonly contentEvents: number
  readonly error: TapEvent['error']
  readonly usage: TapEvent['usage']
  readonly finishReason: StreamTap['finishReason']
  readonly done: boolean
  readonly oversizedFrames: number
}

/** Feeds all pieces and sums up what came of it. */
export function runTap(tap: StreamTap, pieces: readonly Uint8Array[]): Tapped {
  const results = [...pieces.map((piece) => tap.feed(piece)), tap.end()]
  const events = results.map((result) => result.event)
  return {
    out: Buffer.concat(results.flatMap((result) => result.pass)),
    contentEvents: events.reduce((sum, event) => sum + event.contentEvents, 0),
    error: events.find((event) => event.error !== undefined)?.error,
    usage: events.filter((event) => event.usage !== undefined).at(-1)?.usage,
    finishReason: tap.finishReason,
    done: events.at(-1)?.done === true,
    oversizedFrames: events.reduce((sum, event) => sum + (event.oversizedFrames ?? 0), 0),
  }
}
