/** Bounds the bytes of all request bodies held at once (`limits.buffered`). */
import { ProxyError } from '../errors.ts'

/** What one request holds. Growing may fail; releasing is idempotent and gives all of it back. */
export interface BufferLease {
  grow(bytes: number): void
  release(): void
}

export class BufferPool {
  #heldBytes = 0
  /** Changes with the configuration; leases given earlier stand. */
  limitBytes: number

  constructor(limitBytes: number) {
    this.limitBytes = limitBytes
  }

  get heldBytes(): number {
    return this.#heldBytes
  }

  /** Opens an empty lease. Its `grow` throws `buffers_full` when all bodies together would pass the limit. */
  lease(): BufferLease {
    let leasedBytes = 0
    let open = true
    return {
      grow: (bytes) => {
        if (this.#heldBytes + bytes > this.limitBytes) {
          throw new ProxyError(
            'buffers_full',
            `request bodies already fill limits.buffered (${this.limitBytes} bytes); retry shortly`,
          )
        }
        if (!open) return
        leasedBytes += bytes
        this.#heldBytes += bytes
      },
      release: () => {
        open = false
        this.#heldBytes -= leasedBytes
        leasedBytes = 0
      },
    }
  }
}

const NOTHING = Buffer.alloc(0)

/** A body kept for as long as an attempt may need it. */
export class HeldBody {
  bytes: Buffer
  readonly #lease: BufferLease

  constructor(bytes: Buffer, lease: BufferLease) {
    this.bytes = bytes
    this.#lease = lease
  }

  /** Forgets the bytes and gives their room back. Idempotent. */
  release(): void {
    this.bytes = NOTHING
    this.#lease.release()
  }
}
