/** Gathers what comes in pieces at about its own size, however small the pieces are. */

/** A buffer costs hundreds of bytes beside its content, so what is smaller than this is copied together, in bytes. */
const SMALL_BYTES = 4096
const SHARED_BYTES = 64 * 1024
/** As many are kept as they come, whatever their size: most bodies have but a few. */
const FEW = 16

export class Pieces {
  readonly #pieces: Buffer[] = []
  #bytes = 0
  /** Where small pieces are copied to, from where on it is not among the pieces yet, and up to where it is written. */
  #shared = Buffer.alloc(0)
  #from = 0
  #to = 0

  get bytes(): number {
    return this.#bytes
  }

  /** Buffers that hold them. */
  get held(): number {
    return this.#pieces.length
  }

  add(piece: Buffer): void {
    this.#bytes += piece.length
    if (this.#pieces.length < FEW || piece.length >= SMALL_BYTES) {
      this.#seal()
      this.#pieces.push(piece)
      return
    }
    if (this.#to + piece.length > this.#shared.length) {
      this.#seal()
      this.#shared = Buffer.allocUnsafe(SHARED_BYTES)
      this.#from = 0
      this.#to = 0
    }
    piece.copy(this.#shared, this.#to)
    this.#to += piece.length
  }

  /** All of it, in order. */
  whole(): Buffer {
    this.#seal()
    const [first] = this.#pieces
    return this.#pieces.length === 1 && first !== undefined ? first : Buffer.concat(this.#pieces, this.#bytes)
  }

  #seal(): void {
    if (this.#to === this.#from) return
    this.#pieces.push(this.#shared.subarray(this.#from, this.#to))
    this.#from = this.#to
  }
}
