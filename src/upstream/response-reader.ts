/** Reads one HTTP/1.1 answer after another from the bytes of a socket, cut anywhere, without copying their bodies. */
import { type ResponseHead, readHead, UnreadableAnswer } from './response-head.ts'

/** Who hears of an answer. Any call may stop the reader. */
export interface AnswerSink {
  onHead(head: ResponseHead): void
  /** Bytes of the body, chunk framing removed. */
  onBody(bytes: Buffer): void
  /** `clean`: nothing came behind the answer, so the socket may serve another one. */
  onEnd(clean: boolean): void
}

type State =
  | 'head'
  | 'length'
  | 'close'
  | 'size'
  | 'extension'
  | 'sizeLf'
  | 'chunk'
  | 'chunkCr'
  | 'chunkLf'
  | 'trailers'
  | 'over'

/** Longest head and longest trailers, in bytes; what engines send has some hundred. */
export const HEAD_BYTES = 32 * 1024
/** Longest chunk extensions of one answer together, in bytes. */
const EXTENSION_BYTES = 16 * 1024
/** Hexadecimal digits of a chunk's size: more than any answer has. */
const SIZE_DIGITS = 12
const BEGINNING = Buffer.from('HTTP/1.')
const HEAD_END = Buffer.from('\r\n\r\n')
const CR = 0x0d
const LF = 0x0a
const TAB = 0x09
const SPACE = 0x20
const SEMICOLON = 0x3b

export class ResponseReader {
  readonly #sink: AnswerSink
  #state: State = 'over'
  /** The beginning of a head whose end has not come. */
  #held: Buffer | undefined
  /** Bytes of the body, or of its chunk, that are still to come. */
  #left = 0
  #size = 0
  #digits = 0
  #extensionBytes = 0
  #trailerBytes = 0
  /** Characters of the trailer line under way. */
  #lineBytes = 0
  #afterCr = false

  constructor(sink: AnswerSink) {
    this.#sink = sink
  }

  /** An answer is awaited from here on. */
  begin(): void {
    this.#state = 'head'
    this.#held = undefined
    this.#extensionBytes = 0
    this.#trailerBytes = 0
    this.#lineBytes = 0
    this.#afterCr = false
  }

  /** Reads no further, also when called by the sink. */
  stop(): void {
    this.#state = 'over'
    this.#held = undefined
  }

  /** Throws UnreadableAnswer; then nothing may be fed any more. */
  feed(bytes: Buffer): void {
    let at = 0
    while (at < bytes.length && this.#state !== 'over') at = this.#step(bytes, at)
  }

  /** The socket has ended. Returns whether that was the end of the answer too. */
  ended(): boolean {
    if (this.#state !== 'close') return false
    this.#end(false)
    return true
  }

  #step(bytes: Buffer, at: number): number {
    switch (this.#state) {
      case 'head':
        return this.#readHead(bytes, at)
      case 'length':
      case 'chunk':
        return this.#readBody(bytes, at)
      case 'close':
        this.#sink.onBody(at === 0 ? bytes : bytes.subarray(at))
        return bytes.length
      case 'size':
        return this.#readSize(bytes, at)
      case 'extension':
        return this.#readExtension(bytes, at)
      case 'sizeLf':
        this.#expect(bytes[at], LF, this.#size === 0 ? 'trailers' : 'chunk')
        this.#left = this.#size
        return at + 1
      case 'chunkCr':
        this.#expect(bytes[at], CR, 'chunkLf')
        return at + 1
      case 'chunkLf':
        this.#expect(bytes[at], LF, 'size')
        this.#size = 0
        this.#digits = 0
        return at + 1
      case 'trailers':
        return this.#readTrailers(bytes, at)
      case 'over':
        return bytes.length
      default:
        return this.#state satisfies never
    }
  }

  #readHead(bytes: Buffer, at: number): number {
    const rest = at === 0 ? bytes : bytes.subarray(at)
    const heldBytes = this.#held?.length ?? 0
    const head = this.#held === undefined ? rest : Buffer.concat([this.#held, rest])
    const end = head.indexOf(HEAD_END, Math.max(0, heldBytes - HEAD_END.length + 1))
    if ((end < 0 ? head.length : end) > HEAD_BYTES)
      throw new UnreadableAnswer('the head of the answer is too large')
    if (end < 0) {
      const known = Math.min(head.length, BEGINNING.length)
      if (head.compare(BEGINNING, 0, known, 0, known) !== 0)
        throw new UnreadableAnswer('the answer is no HTTP/1.1')
      this.#held = head
      return bytes.length
    }
    this.#held = undefined
    const next = at + end + HEAD_END.length - heldBytes
    this.#beginBody(readHead(head.toString('latin1', 0, end)), next === bytes.length)
    return next
  }

  #beginBody(head: ResponseHead, last: boolean): void {
    const { status, framing } = head
    if (status === 101) throw new UnreadableAnswer('the engine changes the protocol unasked')
    // An interim answer: the real one follows.
    if (status < 200) return
    if (framing === 'chunks') {
      this.#state = 'size'
      this.#size = 0
      this.#digits = 0
    } else if (framing === 'close') this.#state = 'close'
    else {
      this.#state = 'length'
      this.#left = framing === 'none' ? 0 : framing
    }
    this.#sink.onHead(head)
    if (this.#state === 'length' && this.#left === 0) this.#end(last)
  }

  #readBody(bytes: Buffer, at: number): number {
    const to = Math.min(bytes.length, at + this.#left)
    this.#left -= to - at
    this.#sink.onBody(at === 0 && to === bytes.length ? bytes : bytes.subarray(at, to))
    if (this.#left > 0) return to
    if (this.#state === 'length') this.#end(to === bytes.length)
    else if (this.#state === 'chunk') this.#state = 'chunkCr'
    return to
  }

  #readSize(bytes: Buffer, from: number): number {
    for (let at = from; at < bytes.length; at += 1) {
      const byte = bytes[at] ?? 0
      const digit = hexOf(byte)
      if (digit >= 0) {
        this.#digits += 1
        if (this.#digits > SIZE_DIGITS) throw new UnreadableAnswer('a chunk of the answer is too large')
        this.#size = this.#size * 16 + digit
        continue
      }
      if (this.#digits === 0 || (byte !== CR && byte !== SEMICOLON))
        throw new UnreadableAnswer('a chunk of the answer has no size')
      this.#state = byte === CR ? 'sizeLf' : 'extension'
      return at + 1
    }
    return bytes.length
  }

  #readExtension(bytes: Buffer, from: number): number {
    for (let at = from; at < bytes.length; at += 1) {
      const byte = bytes[at] ?? 0
      if (byte === CR) {
        this.#state = 'sizeLf'
        return at + 1
      }
      this.#extensionBytes += 1
      if (isControl(byte) || this.#extensionBytes > EXTENSION_BYTES)
        throw new UnreadableAnswer('a chunk of the answer has no size')
    }
    return bytes.length
  }

  /** Lines up to an empty one, for which nobody asked. */
  #readTrailers(bytes: Buffer, from: number): number {
    for (let at = from; at < bytes.length; at += 1) {
      const byte = bytes[at] ?? 0
      this.#trailerBytes += 1
      if (this.#afterCr) {
        if (byte !== LF) throw new UnreadableAnswer('a trailer of the answer is malformed')
        this.#afterCr = false
        if (this.#lineBytes === 0) {
          this.#end(at + 1 === bytes.length)
          return at + 1
        }
        this.#lineBytes = 0
      } else if (byte === CR) this.#afterCr = true
      else {
        this.#lineBytes += 1
        if (isControl(byte) || this.#trailerBytes > HEAD_BYTES)
          throw new UnreadableAnswer('a trailer of the answer is malformed')
      }
    }
    return bytes.length
  }

  #expect(byte: number | undefined, wanted: number, next: State): void {
    if (byte !== wanted) throw new UnreadableAnswer('a chunk of the answer is not as long as it says')
    this.#state = next
  }

  #end(clean: boolean): void {
    this.#state = 'over'
    this.#sink.onEnd(clean)
  }
}

function hexOf(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30
  const lower = byte | 0x20
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1
}

function isControl(byte: number): boolean {
  return (byte < SPACE && byte !== TAB) || byte === 0x7f
}
