/** The running streams of a replica in flat arrays: each event reads hundreds of them, and what that costs is memory. */
import type { InFlight, ReplicaLedger } from '../core/ledger.ts'
import type { PoolId } from '../core/request.ts'
import type { Tokens } from '../core/units.ts'
import { type Figure, type OutputLengths, remainingWithin } from '../estimate/output-length.ts'
import { keptBy } from './kept.ts'
import type { Learnt } from './learnt.ts'

/** Columns have room for so many streams at first. */
const FIRST_ROOM = 16

type Column = Float64Array<ArrayBuffer>

/** One row for each stream, in order of their first tokens; `count` of them. */
export class Streams {
  count = 0
  readonly inFlights: InFlight[] = []
  readonly pools: PoolId[] = []
  /** Undefined where nothing is generated. */
  readonly lengths: (OutputLengths | undefined)[] = []
  sequences = new Float64Array(FIRST_ROOM)
  promptTokens = new Float64Array(FIRST_ROOM)
  uncachedTokens = new Float64Array(FIRST_ROOM)
  /** Infinity where the client gave no cap; 0 where it gave no floor. */
  capTokens = new Float64Array(FIRST_ROOM)
  floorTokens = new Float64Array(FIRST_ROOM)
  /** NaN where no pace was promised or nobody sees it. */
  targetMs = new Float64Array(FIRST_ROOM)
  firstTokenAtMs = new Float64Array(FIRST_ROOM)
  /** For whoever reads what is left of it: how far it was then, what was left, and its whole expected length. */
  readTokens = new Float64Array(FIRST_ROOM)
  leftTokens = new Float64Array(FIRST_ROOM)
  wholeTokens = new Float64Array(FIRST_ROOM)
  /** Its place by what is left of it when that was sorted last; Infinity before. */
  rank = new Float64Array(FIRST_ROOM)
  #version = Number.NaN

  /** Takes the streams that the ledger has now: they leave anywhere but come only at the end. */
  follow({ version, decoding }: ReplicaLedger, learnt: Learnt): this {
    if (version === this.#version) return this
    this.#version = version
    let at = 0
    for (const inFlight of decoding.values()) {
      let found = at
      while (found < this.count && this.inFlights[found] !== inFlight) found++
      if (found > at) this.#cut(at, found)
      if (at === this.count) this.#add(inFlight, learnt)
      at++
    }
    if (at < this.count) this.#cut(at, this.count)
    return this
  }

  /** What `Learnt.remaining` says of that row, without looking for its lengths. */
  remaining(row: number, soFar: Tokens, figure: Figure): Tokens {
    const lengths = this.lengths[row]
    if (lengths === undefined) return 0
    const cap = this.capTokens[row] ?? Number.POSITIVE_INFINITY
    return remainingWithin(lengths, soFar, cap, this.floorTokens[row] ?? 0, figure)
  }

  #add(inFlight: InFlight, learnt: Learnt): void {
    const at = this.count++
    if (at === this.rank.length) this.#grow()
    const { offer, uncachedTokens, firstTokenAtMs } = inFlight
    this.inFlights.push(inFlight)
    this.pools.push(offer.pool)
    this.lengths.push(offer.kind === 'generate' ? learnt.lengthsOf(offer) : undefined)
    this.sequences[at] = offer.sequences
    this.promptTokens[at] = offer.promptTokens
    this.uncachedTokens[at] = uncachedTokens
    this.capTokens[at] = offer.maxOutputTokens ?? Number.POSITIVE_INFINITY
    this.floorTokens[at] = offer.minOutputTokens ?? 0
    const isJudged = offer.streamed && firstTokenAtMs !== undefined
    this.targetMs[at] = (isJudged ? offer.slo.tpotMs : undefined) ?? Number.NaN
    this.firstTokenAtMs[at] = firstTokenAtMs ?? 0
    this.readTokens[at] = Number.NEGATIVE_INFINITY
    this.leftTokens[at] = 0
    this.wholeTokens[at] = 0
    this.rank[at] = Number.POSITIVE_INFINITY
  }

  /** Takes out the rows from `at` to before `end`. */
  #cut(at: number, end: number): void {
    for (const list of [this.inFlights, this.pools, this.lengths]) list.splice(at, end - at)
    this.#eachColumn((column) => column.copyWithin(at, end, this.count))
    this.count -= end - at
  }

  #grow(): void {
    this.#eachColumn((column) => {
      const larger = new Float64Array(2 * column.length)
      larger.set(column)
      return larger
    })
  }

  #eachColumn(change: (column: Column) => Column): void {
    this.sequences = change(this.sequences)
    this.promptTokens = change(this.promptTokens)
    this.uncachedTokens = change(this.uncachedTokens)
    this.capTokens = change(this.capTokens)
    this.floorTokens = change(this.floorTokens)
    this.targetMs = change(this.targetMs)
    this.firstTokenAtMs = change(this.firstTokenAtMs)
    this.readTokens = change(this.readTokens)
    this.leftTokens = change(this.leftTokens)
    this.wholeTokens = change(this.wholeTokens)
    this.rank = change(this.rank)
  }
}

const kept = keptBy<ReplicaLedger, Streams>()

/** Those of a replica as they stand; one and the same object each time. Costs O(streams there) when a permit moved. */
export function streamsOf(ledger: ReplicaLedger, learnt: Learnt): Streams {
  let streams = kept(learnt).get(ledger)
  if (streams === undefined) {
    streams = new Streams()
    kept(learnt).set(ledger, streams)
  }
  return streams.follow(ledger, learnt)
}
