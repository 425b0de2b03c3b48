/** The prompt blocks that were used last and who holds each: flat lists, so that a hundred thousand are nothing to collect. */

/** No block. */
const NONE = -1
const FIRST_ROOM = 1024

/** At most `maxBlocks`; whichever was not used for longest goes first. Holders are told apart by identity. */
export class HeldBlocks<H extends object> {
  readonly #maxBlocks: number
  /** Where the lists below have each block. */
  readonly #places = new Map<string, number>()
  readonly #free: number[] = []
  readonly #hashes: string[] = []
  /** The only holder, as most blocks have but one, and its clock when it used the block; else all are in `more`. */
  readonly #holders: (H | undefined)[] = []
  #usedAtTokens = new Float64Array(FIRST_ROOM)
  readonly #more: (Map<H, number> | undefined)[] = []
  /** Neighbours by last use. */
  #older = new Int32Array(FIRST_ROOM)
  #newer = new Int32Array(FIRST_ROOM)
  #oldest = NONE
  #newest = NONE

  constructor(maxBlocks: number) {
    this.#maxBlocks = maxBlocks
  }

  get size(): number {
    return this.#places.size
  }

  /** Where a block is, for the questions below; undefined when nobody holds it. Good until the next `use` or `forget`. */
  find(hash: string): number | undefined {
    return this.#places.get(hash)
  }

  /** Whoever holds it, in the order in which they came to it. */
  holdersAt(place: number): readonly H[] {
    const holder = this.#holders[place]
    return holder === undefined ? [...(this.#more[place]?.keys() ?? [])] : [holder]
  }

  /** The holder's clock when it used the block last; undefined when it does not hold it. */
  usedAt(place: number, holder: H): number | undefined {
    return this.#holders[place] === holder ? this.#usedAtTokens[place] : this.#more[place]?.get(holder)
  }

  /** The holder uses the block when its clock, which counts tokens, shows `atTokens`. */
  use(hash: string, holder: H, atTokens: number): void {
    const known = this.#places.get(hash)
    if (known !== undefined) this.#unlink(known)
    const place = known ?? this.#open(hash, holder)
    this.#link(place)
    const only = this.#holders[place]
    if (only === holder) this.#usedAtTokens[place] = atTokens
    else if (only === undefined) this.#more[place]?.set(holder, atTokens)
    else {
      const before: [H, number] = [only, this.#usedAtTokens[place] ?? 0]
      this.#more[place] = new Map([before, [holder, atTokens]])
      this.#holders[place] = undefined
    }
  }

  /** The holder does not hold it any more. */
  drop(place: number, holder: H): void {
    const more = this.#more[place]
    more?.delete(holder)
    if (this.#holders[place] !== holder && more?.size !== 0) return
    this.#unlink(place)
    this.#close(place)
  }

  /** It holds nothing any more. Costs a look at each block. */
  forget(holder: H): void {
    for (const place of this.#places.values()) this.drop(place, holder)
  }

  #open(hash: string, holder: H): number {
    if (this.#places.size >= this.#maxBlocks && this.#oldest !== NONE) {
      const oldest = this.#oldest
      this.#unlink(oldest)
      this.#close(oldest)
    }
    const place = this.#free.pop() ?? this.#hashes.length
    if (place >= this.#usedAtTokens.length) this.#grow()
    this.#places.set(hash, place)
    this.#hashes[place] = hash
    this.#holders[place] = holder
    this.#more[place] = undefined
    return place
  }

  #close(place: number): void {
    this.#places.delete(this.#hashes[place] ?? '')
    this.#hashes[place] = ''
    this.#holders[place] = undefined
    this.#more[place] = undefined
    this.#free.push(place)
  }

  #link(place: number): void {
    this.#older[place] = this.#newest
    this.#newer[place] = NONE
    if (this.#newest === NONE) this.#oldest = place
    else this.#newer[this.#newest] = place
    this.#newest = place
  }

  #unlink(place: number): void {
    const older = this.#older[place] ?? NONE
    const newer = this.#newer[place] ?? NONE
    if (older === NONE) this.#oldest = newer
    else this.#newer[older] = newer
    if (newer === NONE) this.#newest = older
    else this.#older[newer] = older
  }

  #grow(): void {
    const room = 2 * this.#usedAtTokens.length
    const [usedAt, older, newer] = [new Float64Array(room), new Int32Array(room), new Int32Array(room)]
    usedAt.set(this.#usedAtTokens)
    older.set(this.#older)
    newer.set(this.#newer)
    this.#usedAtTokens = usedAt
    this.#older = older
    this.#newer = newer
  }
}
