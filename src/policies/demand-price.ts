/** What a place in the engines costs while more is asked of them than they can do: the cheapest work that fills them. */
import { clamp, type Ms, type Ratio } from '../core/units.ts'

/** Buckets grow by 2^(1/4) from a millisecond of engine time per unit of value. */
const BUCKETS = 80
const BUCKETS_PER_OCTAVE = 4
/** Demand is averaged over about so many TTFT targets, so that a burst that can still wait is none. */
const MEMORY_TARGETS = 8
/** A target counts as one within these, in ms. */
const MIN_TARGET_MS: Ms = 500
const MAX_TARGET_MS: Ms = 7500
/** Weight of one more request in the mean of ln(target): few that have long must not make many that have not wait. */
const TARGET_WEIGHT = 0.05
/** Part of what is served that may be dearer than the price; more shows that there is more room than was thought. */
const DEAR_RATIO = 0.05
/** Room grows within half a memory, up to so many times what engines are known to do, and fades within ten. */
const ROOM_GAIN = 2
const MAX_ROOM_RATIO = 10
const ROOM_FADES = 10

/** What one request asks of the engines, in ms of the time that one replica has for this gate. */
export interface Demand {
  /** Prefill time, with the pauses that running streams need after it. */
  readonly prefillMs: Ms
  /** Time of its slot over the number of slots; 0 where slots don't bind. */
  readonly slotMs: Ms
  readonly value: number
}

/**
 * Moore and Hodgson's rule keeps the cheapest work for its value. While demand lasts above capacity, whatever is dearer
 * than the work that fills the engines will be displaced before its turn, so it can be told at once. The price is that
 * of a fluid limit: recent demand sorted by cost per value, cut where prefill or slots are full. The engines' room is
 * corrected by what happens: a price at which they run out of cheap work, so that dear work goes instead, is too low.
 */
export class DemandPrice {
  readonly #prefillMs = new Float64Array(BUCKETS)
  readonly #slotMs = new Float64Array(BUCKETS)
  #readAtMs: Ms | undefined
  #lnTarget: number | undefined
  #memoryMs = MEMORY_TARGETS * MIN_TARGET_MS
  /** What was sent to the engines, in the same terms. */
  #servedPrefillMs: Ms = 0
  #servedSlotMs: Ms = 0
  #roomRatio: Ratio = 1
  /** Where the price stands for so many replicas; undefined since anything changed. */
  #full: { readonly replicas: number; readonly bucket: number } | undefined

  /** `targetMs`: the time that it has to its first token. */
  arrived(demand: Demand, targetMs: Ms, nowMs: Ms): void {
    if (!isFiniteDemand(demand)) return
    const ln = Math.log(clamp(targetMs, MIN_TARGET_MS, MAX_TARGET_MS))
    this.#lnTarget = (this.#lnTarget ?? ln) + TARGET_WEIGHT * (ln - (this.#lnTarget ?? ln))
    this.#fade(nowMs, MEMORY_TARGETS * Math.exp(this.#lnTarget))
    this.#full = undefined
    const bucket = bucketOf(demand)
    this.#prefillMs[bucket] = (this.#prefillMs[bucket] ?? 0) + demand.prefillMs
    this.#slotMs[bucket] = (this.#slotMs[bucket] ?? 0) + demand.slotMs
  }

  /** It was admitted: engines that take more than their time, since requests share steps, show it here. */
  served(demand: Demand, replicas: number, nowMs: Ms): void {
    if (!isFiniteDemand(demand)) return
    const dear = this.outprices(demand, replicas, nowMs) ? 1 : 0
    const part = (demand.prefillMs + demand.slotMs) / (replicas * this.#memoryMs)
    this.#roomRatio *= Math.exp(ROOM_GAIN * part * (dear - DEAR_RATIO))
    this.#roomRatio = clamp(this.#roomRatio, 1, MAX_ROOM_RATIO)
    this.#full = undefined
    this.#servedPrefillMs += demand.prefillMs
    this.#servedSlotMs += demand.slotMs
  }

  /** True when demand cheaper than this one's fills `replicas` engines by itself. */
  outprices(demand: Demand, replicas: number, nowMs: Ms): boolean {
    return this.#fills(bucketOf(demand), replicas, nowMs)
  }

  /** How long until that is so no more, if nobody else comes, in ms; 0 when it is not so. Rather too long than too short. */
  opensInMs(demand: Demand, replicas: number, nowMs: Ms): Ms {
    if (!this.outprices(demand, replicas, nowMs)) return 0
    let prefill = 0
    let slot = 0
    for (let bucket = 0; bucket < bucketOf(demand); bucket++) {
      prefill += this.#prefillMs[bucket] ?? 0
      slot += this.#slotMs[bucket] ?? 0
    }
    const nominals = Math.max(prefill, slot) / (replicas * this.#memoryMs)
    // What was learnt of room beyond the nominal fades as well: by then it is no less than this.
    const roomRatio = 1 + (this.#roomRatio - 1) * Math.exp(-Math.log(nominals) / ROOM_FADES)
    return this.#memoryMs * Math.log(nominals / roomRatio)
  }

  /** True when all demand with a promise together fills `replicas` engines: nothing is left over. */
  takesAll(replicas: number, nowMs: Ms): boolean {
    return this.#fills(BUCKETS, replicas, nowMs)
  }

  /** True when demand in buckets below `end` is more than `replicas` engines do in the same time. */
  #fills(end: number, replicas: number, nowMs: Ms): boolean {
    this.#fade(nowMs)
    if (this.#full?.replicas !== replicas) this.#full = { replicas, bucket: this.#fullFrom(replicas) }
    return end > this.#full.bucket
  }

  /** The bucket in which demand, the cheapest first, comes to more than there is room for; past the last if none. */
  #fullFrom(replicas: number): number {
    const nominal = replicas * this.#memoryMs * this.#roomRatio
    const prefillRoom = Math.max(nominal, this.#servedPrefillMs)
    const slotRoom = Math.max(nominal, this.#servedSlotMs)
    let prefill = 0
    let slot = 0
    for (let bucket = 0; bucket < BUCKETS; bucket++) {
      prefill += this.#prefillMs[bucket] ?? 0
      slot += this.#slotMs[bucket] ?? 0
      if (prefill > prefillRoom || slot > slotRoom) return bucket
    }
    return BUCKETS
  }

  /** Lets time pass, then tells the rates that were seen over another memory from now on. */
  #fade(nowMs: Ms, memoryMs = this.#memoryMs): void {
    const passed = Math.max(0, nowMs - (this.#readAtMs ?? nowMs)) / this.#memoryMs
    const keepRatio = (Math.exp(-passed) * memoryMs) / this.#memoryMs
    this.#readAtMs = nowMs
    this.#memoryMs = memoryMs
    if (keepRatio === 1) return
    this.#full = undefined
    this.#roomRatio = 1 + (this.#roomRatio - 1) * Math.exp(-passed / ROOM_FADES)
    this.#servedPrefillMs *= keepRatio
    this.#servedSlotMs *= keepRatio
    for (let bucket = 0; bucket < BUCKETS; bucket++) {
      this.#prefillMs[bucket] = (this.#prefillMs[bucket] ?? 0) * keepRatio
      this.#slotMs[bucket] = (this.#slotMs[bucket] ?? 0) * keepRatio
    }
  }
}

/** What is no number must not stay in sums that only ever fade. */
function isFiniteDemand({ prefillMs, slotMs }: Demand): boolean {
  return Number.isFinite(prefillMs + slotMs)
}

function bucketOf({ prefillMs, slotMs, value }: Demand): number {
  const density = Math.max(1, (prefillMs + slotMs) / value)
  return Math.min(BUCKETS - 1, Math.floor(BUCKETS_PER_OCTAVE * Math.log2(density)))
}
