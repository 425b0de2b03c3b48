/** Finds the frames of an event stream in bytes cut anywhere, without copying a frame that lies in one piece. */

const LF = 0x0a
const CR = 0x0d
const NO_BYTES = Buffer.alloc(0)
const BYTE_ORDER_MARK = 0xfeff

/** A frame lies in `bytes` from `start` to `end`, blank line included; the bytes may be those that were fed. */
export interface Frame {
  readonly bytes: Buffer
  readonly start: number
  readonly end: number
  /** More than the cap came without a blank line: only the beginning is here, and the rest is never looked at. */
  readonly oversized: boolean
}

/** Where the frame that ended at `end` of the fed piece began there; negative when it began in an earlier piece. */
export type FrameVisitor = (frame: Frame, startInPiece: number, endInPiece: number) => void

/** Longest frame that is looked into, in bytes. Longer ones pass, and are reported as oversized. */
export const FRAME_CAP_BYTES = 1 << 20

/** A view of the same memory as a Buffer, whose searches are native. */
export function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}

/**
 * Splits at blank lines made of LF, CRLF or CR. Memory is bounded by the cap, since only the pieces of the frame that
 * has not ended yet are kept (as references). A frame ends with its blank line's first line-end byte; the LF of a CRLF
 * that arrives later belongs to it still (`lateLf`).
 */
export class FrameSplitter {
  readonly #capBytes: number
  #held: Buffer[] = []
  #heldBytes = 0
  #skipping = false
  /** The last byte seen ended a line (or nothing was seen yet), so that a line end now is a blank line. */
  #atLineStart = true
  /** The last byte seen was a CR: an LF now belongs to the same line end. */
  #afterCr = false
  /** Bytes of the current frame have been seen. */
  #open = false

  constructor(capBytes = FRAME_CAP_BYTES) {
    this.#capBytes = capBytes
  }

  /** True when every byte fed so far belongs to a frame that has ended, line end complete. */
  get betweenFrames(): boolean {
    return !this.#open && !this.#afterCr
  }

  /** True when an LF at the beginning of the next piece would still belong to the frame that ended last. */
  get awaitsLf(): boolean {
    return !this.#open && this.#afterCr
  }

  /** Visits each frame that ends in this piece, and a frame that outgrows the cap in it. */
  feed(piece: Buffer, visit: FrameVisitor): void {
    let start = 0
    if (this.#afterCr && piece.length > 0) {
      this.#afterCr = false
      // The CR was taken for a whole line end already, so its LF is nobody's blank line.
      if (piece[0] === LF) start = 1
    }
    const from = this.#open ? 0 : start
    const rest =
      piece.indexOf(CR, start) < 0
        ? this.#scanLf(piece, from, start, visit)
        : this.#scanAny(piece, from, start, visit)
    if (rest < piece.length) this.#hold(piece.subarray(rest), piece, rest, visit)
  }

  /** What is left without its blank line at the end of the stream, if anything. */
  end(visit: FrameVisitor): void {
    if (!this.#open) return
    this.#finish(NO_BYTES, 0, 0, visit)
  }

  /** Only LF in this piece: lines are found by native search. Returns where the unfinished frame begins. */
  #scanLf(piece: Buffer, from: number, first: number, visit: FrameVisitor): number {
    let frameAt = from
    let lineAt = first
    while (lineAt < piece.length) {
      // Most lines are followed by a blank one, and a look costs less than a search.
      const lf = piece[lineAt] === LF ? lineAt : piece.indexOf(LF, lineAt)
      if (lf < 0) {
        this.#atLineStart = false
        return frameAt
      }
      const blank = lf === lineAt && (lf > first || this.#atLineStart)
      this.#atLineStart = true
      lineAt = lf + 1
      if (!blank) continue
      this.#finish(piece, frameAt, lineAt, visit)
      frameAt = lineAt
    }
    return frameAt
  }

  #scanAny(piece: Buffer, from: number, first: number, visit: FrameVisitor): number {
    let frameAt = from
    for (let at = first; at < piece.length; at += 1) {
      const byte = piece[at]
      if (byte !== LF && byte !== CR) {
        this.#atLineStart = false
        continue
      }
      const blank = this.#atLineStart
      if (byte === CR) {
        if (piece[at + 1] === LF) at += 1
        else if (at + 1 === piece.length) this.#afterCr = true
      }
      this.#atLineStart = true
      if (!blank) continue
      this.#finish(piece, frameAt, at + 1, visit)
      frameAt = at + 1
    }
    return frameAt
  }

  #finish(piece: Buffer, start: number, end: number, visit: FrameVisitor): void {
    const held = this.#held
    this.#open = false
    if (this.#skipping) {
      // The frame itself was reported when it outgrew the cap; this empty one only marks its end.
      this.#skipping = false
      visit({ bytes: NO_BYTES, start: 0, end: 0, oversized: false }, -1, end)
      return
    }
    if (held.length === 0) {
      visit({ bytes: piece, start, end, oversized: false }, start, end)
      return
    }
    const bytes = Buffer.concat([...held, piece.subarray(start, end)])
    const before = this.#heldBytes
    this.#held = []
    this.#heldBytes = 0
    visit({ bytes, start: 0, end: bytes.length, oversized: false }, -before, end)
  }

  #hold(tail: Buffer, piece: Buffer, at: number, visit: FrameVisitor): void {
    this.#open = true
    if (this.#skipping) return
    this.#held.push(tail)
    this.#heldBytes += tail.length
    if (this.#heldBytes <= this.#capBytes) return
    const bytes = this.#held[0] ?? tail
    const before = this.#heldBytes - tail.length
    this.#held = []
    this.#heldBytes = 0
    this.#skipping = true
    visit({ bytes, start: 0, end: bytes.length, oversized: true }, at - before, piece.length)
  }
}

/** The event name and the data of a frame, its `data` lines joined; for the frames worth reading in full. */
export function readFrame(frame: Frame): { readonly event: string; readonly data: string } {
  const { bytes, start, end } = frame
  // Nearly all frames are a single `data: …` line with its blank line.
  if (bytes[start] === 0x64 && bytes.indexOf(LF, start) === end - 2) {
    const text = bytes.toString('utf8', start, end - 2)
    if (text.startsWith('data: ') && !text.includes('\r')) return { event: '', data: text.slice(6) }
  }
  let event = ''
  let data: string | undefined
  for (const line of frame.bytes.toString('utf8', frame.start, frame.end).split(/\r\n|\n|\r/)) {
    const colon = line.indexOf(':')
    if (colon <= 0) continue
    // A stream may begin with a byte order mark, which is no part of its first field.
    const field = line.slice(line.charCodeAt(0) === BYTE_ORDER_MARK ? 1 : 0, colon)
    const value = line.slice(line.charCodeAt(colon + 1) === 0x20 ? colon + 2 : colon + 1)
    if (field === 'event') event = value
    else if (field === 'data') data = data === undefined ? value : `${data}\n${value}`
  }
  return { event, data: data ?? '' }
}
