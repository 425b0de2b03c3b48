/** Keeps the last predicted and real times to first token of each replica, so that the two can be looked at side by side. */
import { LRUCache } from 'lru-cache'
import type { Settlement } from '../core/records.ts'
import type { ReplicaId } from '../core/request.ts'
import type { Ms } from '../core/units.ts'

/** Medians over the same requests. */
export interface TtftPair {
  readonly samples: number
  readonly predictedMs: Ms
  readonly realMs: Ms
}

const MAX_REPLICAS = 1000
const MAX_PAIRS = 64
/** Older pairs tell of another load. */
const MAX_AGE_MS: Ms = 5 * 60_000

interface Pair {
  readonly atMs: Ms
  readonly predictedMs: Ms
  readonly realMs: Ms
}

export class TtftPairs {
  readonly #pairs = new LRUCache<ReplicaId, Pair[]>({ max: MAX_REPLICAS })

  settled({ replicaId, predictedTtftMs, ttftMs }: Settlement, nowMs: Ms): void {
    if (replicaId === undefined || predictedTtftMs === undefined || ttftMs === undefined) return
    if (!Number.isFinite(predictedTtftMs)) return
    const pairs = this.#pairs.get(replicaId) ?? []
    pairs.push({ atMs: nowMs, predictedMs: predictedTtftMs, realMs: ttftMs })
    if (pairs.length > MAX_PAIRS) pairs.shift()
    this.#pairs.set(replicaId, pairs)
  }

  /** Undefined while the replica has given no predicted first token lately. */
  of(replicaId: ReplicaId, nowMs: Ms): TtftPair | undefined {
    const recent = (this.#pairs.get(replicaId) ?? []).filter(({ atMs }) => nowMs - atMs <= MAX_AGE_MS)
    if (recent.length === 0) return undefined
    return {
      samples: recent.length,
      predictedMs: median(recent.map(({ predictedMs }) => predictedMs)),
      realMs: median(recent.map(({ realMs }) => realMs)),
    }
  }
}

function median(values: number[]): number {
  values.sort((a, b) => a - b)
  const middle = values.length >> 1
  const upper = values[middle] ?? 0
  return values.length % 2 === 1 ? upper : ((values[middle - 1] ?? 0) + upper) / 2
}
