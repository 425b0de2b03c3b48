/** Messages over a socket: a line of JSON for all that one turn of the event loop has to say, bounded both ways. */
import type { Socket } from 'node:net'

export interface LinkEnds<In> {
  /** Messages in the order in which they were sent. */
  onMessage(message: In): void
  /** It is over, once; `why` for the log. */
  onClosed(why: string): void
}

/** A peer that has stopped reading, or one line without an end, holds no more than this, in characters or bytes. */
const MAX_HELD = 64 * 1024 * 1024

export class LineLink<Out, In> {
  readonly #socket: Socket
  readonly #ends: LinkEnds<In>
  #batch: Out[] = []
  #rest = ''
  #closed = false

  constructor(socket: Socket, ends: LinkEnds<In>) {
    this.#socket = socket
    this.#ends = ends
    socket.setNoDelay(true)
    socket.setEncoding('utf8')
    socket.on('data', (text: string) => this.#read(text))
    socket.on('error', (error) => this.close(error.message))
    socket.on('close', () => this.close('the other end has closed it'))
  }

  /** Goes out with everything else of this turn. Dropped when the link is over. */
  send(message: Out): void {
    if (this.#closed) return
    if (this.#batch.push(message) === 1) setImmediate(() => this.flush())
  }

  /** Writes out what has been gathered. */
  flush(): void {
    if (this.#closed || this.#batch.length === 0) return
    const line = `${JSON.stringify(this.#batch)}\n`
    this.#batch = []
    this.#socket.write(line)
    if (this.#socket.writableLength > MAX_HELD) this.close('the other end does not read')
  }

  /** Ends it now; idempotent. */
  close(why: string): void {
    if (this.#closed) return
    this.#closed = true
    this.#batch = []
    this.#socket.destroy()
    this.#ends.onClosed(why)
  }

  /** Ends it; resolves once everything sent has gone out, or can't any more. */
  end(): Promise<void> {
    this.flush()
    return new Promise((resolve) => {
      if (this.#socket.destroyed) resolve()
      this.#socket.once('close', () => resolve())
      this.#socket.end(() => resolve())
    })
  }

  #read(text: string): void {
    this.#rest += text
    for (let at = this.#rest.indexOf('\n'); at >= 0; at = this.#rest.indexOf('\n')) {
      const line = this.#rest.slice(0, at)
      this.#rest = this.#rest.slice(at + 1)
      if (!this.#take(line)) return
    }
    if (this.#rest.length > MAX_HELD) this.close('a line has no end')
  }

  /** False when the link did not outlive the line. */
  #take(line: string): boolean {
    let batch: readonly In[]
    try {
      batch = JSON.parse(line) as readonly In[]
    } catch {
      this.close('the other end does not speak JSON')
      return false
    }
    for (const message of batch) {
      if (this.#closed) return false
      this.#ends.onMessage(message)
    }
    return !this.#closed
  }
}
