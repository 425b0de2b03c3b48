/** Relays an event stream: held until its first content, then passed on as it comes, read beside its bytes. */
import type { SettleOutcome } from '../core/records.ts'
import type { Ms } from '../core/units.ts'
import type { ResponseClass, ResponseHeaders, StreamTap, TapEvent } from '../engines/adapter.ts'
import type { BodyExits, UpstreamBody } from './upstream-body.ts'

/** Held before the first content at most; beyond it the stream is passed on, content or not. */
const HOLD_BYTES = 64 * 1024
/** As much of an error's type as is kept; it is the engine's text, of any length. */
const ERROR_TYPE_CHARS = 64

export class StreamBody implements UpstreamBody {
  readonly #tap: StreamTap
  readonly #exits: BodyExits
  readonly #headers: ResponseHeaders
  #held: Uint8Array[] | undefined = []
  #heldBytes = 0
  #done = false
  /** How it ends whatever still comes, once an error event was seen. */
  #failure: SettleOutcome | undefined

  constructor(tap: StreamTap, headers: ResponseHeaders, exits: BodyExits) {
    this.#tap = tap
    this.#headers = headers
    this.#exits = exits
  }

  get started(): boolean {
    return this.#held === undefined
  }

  get betweenFrames(): boolean {
    return this.#held !== undefined || this.#tap.betweenFrames
  }

  get ended(): SettleOutcome | undefined {
    return this.#done && this.#held === undefined ? this.#outcome : undefined
  }

  onBytes(bytes: Uint8Array, nowMs: Ms): void {
    const { pass, event } = this.#tap.feed(bytes)
    this.#take(pass, event, nowMs)
  }

  onEnd(nowMs: Ms): void {
    const { pass, event } = this.#tap.end()
    this.#exits.tally.finishReason = this.#tap.finishReason
    // Some servers leave the marker out; a message that is whole and says why it ended lacks nothing.
    if (this.#tap.generationEnded && endsByItself(this.#headers)) this.#done = true
    if (this.#take(pass, event, nowMs)) return
    if (this.#held !== undefined && !this.#done) {
      this.#exits.bounce('reset', 'the stream ended before any content', true)
      return
    }
    this.#release(nowMs)
    this.#exits.answer.end()
    if (this.#failure === undefined && !this.#done) {
      this.#exits.broke('the stream ended without its end marker')
    }
    this.#exits.finish(this.#outcome)
  }

  get #outcome(): SettleOutcome {
    return this.#failure ?? (this.#done ? 'completed' : 'truncated')
  }

  /** Returns true when an exit was taken. */
  #take(pass: readonly Uint8Array[], event: TapEvent, nowMs: Ms): boolean {
    const { tally } = this.#exits
    let broke: string | undefined
    if (event.usage !== undefined) tally.usage = { ...tally.usage, ...event.usage }
    tally.oversizedFrames += event.oversizedFrames ?? 0
    if (event.done) this.#done = true
    if (event.error !== undefined) {
      const inside = event.contentEvents === 0 && this.#held !== undefined
      if (inside && this.#refusedInside(event.error)) return true
      tally.engineError ??= event.error.type.slice(0, ERROR_TYPE_CHARS)
      if (this.#failure === undefined && !inside && isEnginesFault(event.error.class))
        broke = event.error.message
      this.#failure ??= inside ? 'client_error' : 'truncated'
    }
    if (this.#held === undefined) for (const piece of pass) this.#exits.write(piece, nowMs)
    else this.#hold(pass)
    if (event.contentEvents > 0) this.#content(event.contentEvents, nowMs)
    else if (this.#heldBytes > HOLD_BYTES) this.#release(nowMs)
    // Behind the content of the same piece, which counts as a success first.
    if (broke !== undefined) this.#exits.broke(broke)
    return false
  }

  #content(events: number, nowMs: Ms): void {
    const { tally } = this.#exits
    this.#release(nowMs)
    tally.contentEvents += events
    tally.lastTokenAtMs = nowMs
    if (tally.firstTokenAtMs === undefined) {
      tally.firstTokenAtMs = nowMs
      this.#exits.firstToken()
      // The gate books the first token by itself; only what came with it is further progress.
      tally.untoldEvents += events - 1
    } else tally.untoldEvents += events
  }

  /**
   * An error event under a status of 200, before any content: the status was a promise that the engine broke. True
   * when another replica may try; the client's own error is passed on instead.
   */
  #refusedInside(error: NonNullable<TapEvent['error']>): boolean {
    switch (error.class) {
      case 'full':
        this.#exits.bounce('engine_full', error.message, false)
        return true
      case 'draining':
      case 'engine_error':
        this.#exits.bounce('engine_error', error.message, true)
        return true
      case 'client_error':
      case 'ok':
        return false
      default:
        return error.class satisfies never
    }
  }

  #hold(pass: readonly Uint8Array[]): void {
    for (const piece of pass) {
      this.#held?.push(piece)
      this.#heldBytes += piece.length
    }
  }

  /** Lets the held frames out in one write. */
  #release(nowMs: Ms): void {
    if (this.#held === undefined) return
    const bytes = Buffer.concat(this.#held, this.#heldBytes)
    this.#held = undefined
    this.#exits.answer.beginStream(this.#headers)
    if (bytes.length > 0) this.#exits.write(bytes, nowMs)
    this.#exits.committed(bytes)
  }
}

/** Whether a message says where it ends; else the end of its socket is all there is, which a fault looks like too. */
function endsByItself(headers: ResponseHeaders): boolean {
  return headers['transfer-encoding'] !== undefined || headers['content-length'] !== undefined
}

/** An engine that is merely full, or a client that asked for nonsense, says nothing against the replica. */
function isEnginesFault(found: ResponseClass): boolean {
  return found === 'engine_error' || found === 'draining'
}

/** Whether an answer with those headers is an event stream. */
export function isEventStream(headers: ResponseHeaders): boolean {
  const type = headers['content-type']
  return typeof type === 'string' && /^text\/event-stream\b/i.test(type)
}
