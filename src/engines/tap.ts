/** Counts, times and judges a stream beside its bytes, and takes the usage frame out where only we asked for it. */
import type { Draft } from '../core/draft.ts'
import type { Usage } from '../core/events.ts'
import type { ResponseClass, StreamTap, TapEvent, TapOptions } from './adapter.ts'
import type { DialectReader, Reading } from './dialect.ts'
import { dialectReader } from './dialects.ts'
import { classOfFailure, type Failure } from './failures.ts'
import { asBuffer, type Frame, FrameSplitter, readFrame } from './sse.ts'
import { mergeUsage } from './usage.ts'

const NO_BYTES: readonly Uint8Array[] = []

/** What the frames of one piece said, gathered. */
interface Tally {
  contentEvents: number
  oversizedFrames: number
  error: TapEvent['error'] | undefined
  usage: Usage | undefined
}

export interface TapSettings extends TapOptions {
  /** Longest frame that is looked into, in bytes. */
  readonly frameCapBytes?: number
  readonly classOf?: (failure: Failure) => ResponseClass
}

class Tap implements StreamTap {
  readonly #splitter: FrameSplitter
  readonly #reader: DialectReader
  readonly #strip: boolean
  readonly #classOf: (failure: Failure) => ResponseClass
  #seenContent = false
  /** A generation has ended without any content. */
  #stopped = false
  #usage: Usage | undefined
  #finishReason: string | undefined
  #generationEnded = false
  #done = false
  /** The last content frame: its end reason and usage are read once, when the stream is over. */
  #last: Frame | undefined
  /** Pieces of a frame under way that may yet have to be taken out. */
  #withheld: Uint8Array[] = []
  /** The frame under way is partly passed on already. */
  #openPassed = false
  #dropLf = false
  readonly #visit = (frame: Frame): void => {
    this.#take(frame)
  }
  #tally: Tally = { contentEvents: 0, oversizedFrames: 0, error: undefined, usage: undefined }

  constructor(settings: TapSettings) {
    this.#splitter = new FrameSplitter(settings.frameCapBytes)
    this.#reader = dialectReader(settings.dialect)
    this.#strip = settings.stripUsage
    this.#classOf = settings.classOf ?? ((failure) => classOfFailure(200, failure))
  }

  get finishReason(): string | undefined {
    return this.#finishReason
  }

  get generationEnded(): boolean {
    return this.#generationEnded
  }

  get betweenFrames(): boolean {
    return this.#strip ? !this.#openPassed && !this.#splitter.awaitsLf : this.#splitter.betweenFrames
  }

  feed(bytes: Uint8Array): { readonly pass: readonly Uint8Array[]; readonly event: TapEvent } {
    if (bytes.length === 0) return { pass: NO_BYTES, event: this.#event() }
    const piece = asBuffer(bytes)
    if (!this.#strip) {
      this.#splitter.feed(piece, this.#visit)
      return { pass: [bytes], event: this.#event() }
    }
    return { pass: this.#feedStripping(piece, bytes), event: this.#event() }
  }

  end(): { readonly pass: readonly Uint8Array[]; readonly event: TapEvent } {
    let drop = false
    this.#splitter.end((frame) => {
      drop = this.#take(frame) && this.#strip
    })
    const pass = drop || this.#withheld.length === 0 ? NO_BYTES : this.#withheld
    this.#withheld = []
    if (!this.#done) this.#readLast()
    return { pass, event: this.#event() }
  }

  /** Passes whole frames but those to be taken out; keeps the beginning of a frame back until its end is known. */
  #feedStripping(piece: Buffer, bytes: Uint8Array): readonly Uint8Array[] {
    const pass: Uint8Array[] = []
    // The LF of a CRLF that was cut in two shares the fate of the frame that it ends.
    const lateLf = this.#splitter.awaitsLf && piece[0] === 0x0a
    let from = lateLf && this.#dropLf ? 1 : 0
    let settled = lateLf ? 1 : 0
    this.#dropLf = false
    const release = (to: number): void => {
      if (this.#withheld.length > 0) {
        pass.push(...this.#withheld)
        this.#withheld = []
      }
      if (to > from) pass.push(from === 0 && to === piece.length ? bytes : piece.subarray(from, to))
      from = to
    }
    this.#splitter.feed(piece, (frame, startInPiece, endInPiece) => {
      const takeOut = this.#take(frame)
      settled = endInPiece
      this.#openPassed = frame.oversized
      if (!takeOut) return
      if (startInPiece < 0) this.#withheld = []
      else release(startInPiece)
      from = endInPiece
      this.#dropLf = endInPiece === piece.length
    })
    this.#dropLf &&= this.#splitter.awaitsLf
    if (this.#openPassed || settled === piece.length) release(piece.length)
    else this.#holdBack(piece, Math.max(from, settled), release)
    if (this.#splitter.betweenFrames) this.#openPassed = false
    return pass
  }

  #holdBack(piece: Buffer, tailAt: number, release: (to: number) => void): void {
    if (tailAt > 0) release(tailAt)
    if (tailAt < piece.length) this.#withheld.push(piece.subarray(tailAt))
  }

  /** Reads one frame into the tally. Returns whether it is a usage frame and nothing else. */
  #take(frame: Frame): boolean {
    if (frame.oversized) return this.#takeOversized(frame)
    if (this.#seenContent) {
      if (this.#reader.looksLikeContent(frame)) {
        this.#tally.contentEvents += 1
        this.#last = frame
        this.#generationEnded = false
        return false
      }
      if (!this.#reader.worthReading(frame)) return false
    }
    const { event, data } = readFrame(frame)
    if (data === '') return false
    const reading = this.#reader.read(event, data)
    this.#note(reading, frame)
    return reading.usageOnly
  }

  #note(reading: Reading, frame: Frame): void {
    const tally = this.#tally
    this.#stopped ||= reading.ends
    // One that stops at once shows its one token at the end marker: a stream cut before that has brought nothing.
    if (reading.content || (reading.done && this.#stopped && !this.#seenContent)) {
      tally.contentEvents += 1
      this.#seenContent = true
      this.#last = frame
    }
    if (reading.usage !== undefined) this.#noteUsage(reading.usage)
    if (reading.finishReason !== undefined) this.#finishReason = reading.finishReason
    if (reading.finishReason !== undefined || reading.content)
      this.#generationEnded = reading.finishReason !== undefined
    if (reading.failure !== undefined) tally.error ??= this.#errorOf(reading.failure)
    if (reading.aborted) tally.error ??= ENGINE_ABORT
    if (!reading.done || this.#done) return
    this.#done = true
    this.#readLast()
  }

  #noteUsage(usage: Usage): void {
    this.#usage = mergeUsage(this.#usage, usage)
    this.#tally.usage = this.#usage
  }

  #takeOversized(frame: Frame): boolean {
    const { event } = readFrame(frame)
    const meaning = this.#reader.oversized(event)
    this.#tally.oversizedFrames += 1
    if (meaning.content) {
      this.#tally.contentEvents += 1
      this.#seenContent = true
      this.#generationEnded = false
    }
    if (meaning.done) this.#done = true
    return false
  }

  #readLast(): void {
    const last = this.#last
    this.#last = undefined
    if (last === undefined || !this.#reader.lastWorthReading(last)) return
    const { event, data } = readFrame(last)
    const reading = this.#reader.read(event, data)
    if (reading.aborted) this.#tally.error ??= ENGINE_ABORT
    this.#finishReason ??= reading.finishReason
    if (reading.finishReason !== undefined) this.#generationEnded = true
    // With usage in every frame, the last one knows the most; it is not read before it is the last.
    const known = this.#usage?.outputTokens ?? 0
    if (reading.usage !== undefined && (reading.usage.outputTokens ?? 0) > known)
      this.#noteUsage(reading.usage)
  }

  #errorOf(failure: Failure): NonNullable<TapEvent['error']> {
    return { class: this.#classOf(failure), type: failure.type, message: failure.message }
  }

  #event(): TapEvent {
    const { contentEvents, oversizedFrames, error, usage } = this.#tally
    if (contentEvents === 0 && oversizedFrames === 0 && error === undefined && usage === undefined) {
      return this.#done ? DONE_ONLY : NOTHING
    }
    if (oversizedFrames === 0 && error === undefined && usage === undefined && !this.#done) {
      this.#tally.contentEvents = 0
      // The event of nearly every piece of a stream.
      if (contentEvents === 1) return ONE_CONTENT
      return { contentEvents, done: false }
    }
    this.#tally = { contentEvents: 0, oversizedFrames: 0, error: undefined, usage: undefined }
    const told: Draft<TapEvent> = { contentEvents, done: this.#done }
    if (oversizedFrames > 0) told.oversizedFrames = oversizedFrames
    if (error !== undefined) told.error = error
    if (usage !== undefined) told.usage = usage
    return told
  }
}

const NOTHING: TapEvent = { contentEvents: 0, done: false }
const ONE_CONTENT: TapEvent = { contentEvents: 1, done: false }
const DONE_ONLY: TapEvent = { contentEvents: 0, done: true }

/** An engine that ends a generation by itself with `abort` is on its way down. */
const ENGINE_ABORT: NonNullable<TapEvent['error']> = {
  class: 'draining',
  type: 'abort',
  message: 'the engine aborted the generation',
}

/** A tap for one stream. */
export function createTap(settings: TapSettings): StreamTap {
  return new Tap(settings)
}
