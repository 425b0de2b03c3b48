/** Relays an event stream that comes compressed though identity was asked for: as it comes, unread, under its true header. */
import type { Ms } from '../core/units.ts'
import type { ResponseHeaders } from '../engines/adapter.ts'
import type { BodyExits, UpstreamBody } from './upstream-body.ts'

/**
 * Its frames can't be seen: the first bytes stand for the first token, tokens are not counted, a usage frame stays in,
 * and its end is the end of its body.
 */
export class EncodedBody implements UpstreamBody {
  /** Nothing of ours would be understood inside it, nor before it. */
  readonly betweenFrames = false
  readonly #headers: ResponseHeaders
  readonly #exits: BodyExits
  #started = false

  constructor(headers: ResponseHeaders, exits: BodyExits) {
    this.#headers = headers
    this.#exits = exits
  }

  get started(): boolean {
    return this.#started
  }

  onBytes(bytes: Uint8Array, nowMs: Ms): void {
    if (this.#started) this.#exits.write(bytes, nowMs)
    else this.#begin(bytes, nowMs)
  }

  onEnd(): void {
    if (!this.#started) {
      this.#exits.bounce('reset', 'the stream ended before any content', true)
      return
    }
    this.#exits.answer.end()
    this.#exits.finish('completed')
  }

  #begin(bytes: Uint8Array, nowMs: Ms): void {
    const { answer, tally } = this.#exits
    if (answer.started) {
      // A heartbeat has promised plain text.
      answer.refuse('upstream_failed', 'the replica sent a compressed stream, which nobody asked for')
      this.#exits.finish('upstream_failed')
      return
    }
    this.#started = true
    answer.beginStream(this.#headers)
    this.#exits.write(bytes, nowMs)
    this.#exits.committed(bytes)
    tally.firstTokenAtMs = nowMs
    tally.opaque = true
    this.#exits.firstToken()
  }
}

/** Whether a body is anything but plain. */
export function isEncoded(headers: ResponseHeaders): boolean {
  const encoding = headers['content-encoding']
  return encoding !== undefined && !(typeof encoding === 'string' && /^(identity)?$/i.test(encoding.trim()))
}
