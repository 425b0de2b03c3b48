/** What a replica's batch holds and how long each part of it will stay: for the KV peak and for slots coming free. */
import type { ReplicaLedger } from '../core/ledger.ts'
import type { Offer, PoolId } from '../core/request.ts'
import type { Ms, Ratio, Tokens } from '../core/units.ts'
import { keptBy } from './kept.ts'
import type { Learnt } from './learnt.ts'
import { type Streams, streamsOf } from './streams.ts'

/** Quantile of remaining lengths: a little more than half, since a stream that stays longer than thought hurts. */
const LENGTH_QUANTILE: Ratio = 0.6

export interface Holding {
  /** Tokens in the KV cache now. */
  readonly used: Tokens
  /** Tokens that each of its sequences still makes. */
  readonly left: Tokens
  readonly sequences: number
}

/** Many of them by column, longest rest first; `count` of them. */
export interface Holdings {
  readonly count: number
  readonly used: Float64Array
  readonly left: Float64Array
  readonly sequences: Float64Array
}

/**
 * Everything in flight there; kept until a permit or a token of it moves, for `keptMs` although tokens do, and for
 * `movedKeptMs` although permits do.
 */
export function holdingsOf(
  ledger: ReplicaLedger,
  learnt: Learnt,
  nowMs: Ms,
  keptMs: Ms,
  movedKeptMs: Ms = 0,
): Holdings {
  const { version, lastTokenAtMs } = ledger
  const known = kept(learnt).get(ledger)
  if (known !== undefined) {
    const ageMs = nowMs - known.readAtMs
    if (known.version === version && (known.lastTokenAtMs === lastTokenAtMs || ageMs < keptMs)) return known
    if (ageMs < movedKeptMs) return known
  }
  const holdings = known ?? new SortedHoldings()
  if (known === undefined) kept(learnt).set(ledger, holdings)
  holdings.read(ledger, learnt, nowMs)
  return holdings
}

const kept = keptBy<ReplicaLedger, SortedHoldings>()

/** Columns that are read anew in place, in an order of which little changes from one time to the next. */
class SortedHoldings implements Holdings {
  version = Number.NaN
  lastTokenAtMs: Ms = Number.NaN
  readAtMs: Ms = Number.NaN
  count = 0
  used = new Float64Array(0)
  left = new Float64Array(0)
  sequences = new Float64Array(0)
  /** The row of the stream; -1 for what is not streaming yet. */
  #from = new Int32Array(0)

  read(ledger: ReplicaLedger, learnt: Learnt, nowMs: Ms): void {
    const streams = streamsOf(ledger, learnt)
    const rows = rowsByRank(streams, this.count)
    this.#makeRoom(ledger.inFlightRequests)
    this.count = 0
    let pool: PoolId | undefined
    let tokensPerEvent = 1
    for (const row of rows) {
      const itsPool = streams.pools[row] ?? ''
      if (itsPool !== pool) tokensPerEvent = learnt.tokensPerEvent(itsPool)
      pool = itsPool
      this.#insertStream(streams, row, tokensPerEvent)
    }
    for (const { offer } of ledger.prefilling.values()) {
      const { used, left, sequences } = holdingOf(offer, 0, learnt)
      this.#insert(used, left, sequences, -1)
    }
    for (let i = 0; i < this.count; i++) {
      const row = this.#from[i] ?? -1
      if (row >= 0) streams.rank[row] = i
    }
    this.version = ledger.version
    this.lastTokenAtMs = ledger.lastTokenAtMs
    this.readAtMs = nowMs
  }

  #insertStream(streams: Streams, row: number, tokensPerEvent: number): void {
    const made = (streams.inFlights[row]?.contentEvents ?? 0) * tokensPerEvent
    const sequences = streams.sequences[row] ?? 1
    const left = streams.remaining(row, made / sequences, LENGTH_QUANTILE)
    this.#insert((streams.promptTokens[row] ?? 0) + made, left, sequences, row)
  }

  #insert(used: Tokens, left: Tokens, sequences: number, row: number): void {
    let at = this.count++
    for (; at > 0 && (this.left[at - 1] ?? 0) < left; at--) {
      this.used[at] = this.used[at - 1] ?? 0
      this.left[at] = this.left[at - 1] ?? 0
      this.sequences[at] = this.sequences[at - 1] ?? 0
      this.#from[at] = this.#from[at - 1] ?? 0
    }
    this.used[at] = used
    this.left[at] = left
    this.sequences[at] = sequences
    this.#from[at] = row
  }

  #makeRoom(count: number): void {
    if (count <= this.left.length) return
    this.used = new Float64Array(2 * count)
    this.left = new Float64Array(2 * count)
    this.sequences = new Float64Array(2 * count)
    this.#from = new Int32Array(2 * count)
  }
}

/** Rows of streams in the order of their ranks, all below `ranks`; those without one come last. */
function rowsByRank({ count, rank }: Streams, ranks: number): readonly number[] {
  const rowOf = new Int32Array(ranks).fill(-1)
  const rows: number[] = []
  for (let row = 0; row < count; row++) {
    const its = rank[row] ?? ranks
    if (its < ranks) rowOf[its] = row
  }
  for (let its = 0; its < ranks; its++) {
    const row = rowOf[its] ?? -1
    if (row >= 0) rows.push(row)
  }
  // Those that came since are the last.
  for (let row = rows.length; row < count; row++) rows.push(row)
  return rows
}

/** One request after `made` tokens over all its sequences. */
export function holdingOf(offer: Offer, made: Tokens, learnt: Learnt): Holding {
  const left = learnt.remaining(offer, made / offer.sequences, LENGTH_QUANTILE)
  return { used: offer.promptTokens + made, left, sequences: offer.sequences }
}
