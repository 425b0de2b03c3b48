/** Relays an answer that is no event stream: held whole, so that its class and usage are known before a byte leaves. */
import type { Ms } from '../core/units.ts'
import type { Dialect, ResponseHeaders } from '../engines/adapter.ts'
import { type ModelRename, ModelRenamer } from '../engines/rename.ts'
import type { BodyExits, UpstreamBody } from './upstream-body.ts'

/** Held at most; a bigger good answer is passed on as it comes, and its usage stays unknown. */
const HOLD_BYTES = 1024 * 1024
/** As much of a refusal as is looked into. */
const HOLD_REFUSAL_BYTES = 64 * 1024

export interface WholeFacts {
  readonly status: number
  readonly headers: ResponseHeaders
  readonly dialect: Dialect
  /** Of the model's name in the answer, when that is wanted. */
  readonly rename?: ModelRename | undefined
}

export class WholeBody implements UpstreamBody {
  readonly betweenFrames = false
  readonly #facts: WholeFacts
  readonly #exits: BodyExits
  readonly #renamer: ModelRenamer | undefined
  #held: Uint8Array[] | undefined = []
  #heldBytes = 0
  #refused = false

  constructor(facts: WholeFacts, exits: BodyExits) {
    this.#facts = facts
    this.#exits = exits
    const readable = facts.headers['content-encoding'] === undefined
    if (readable && facts.rename !== undefined) this.#renamer = new ModelRenamer(facts.rename)
  }

  get started(): boolean {
    return this.#held === undefined
  }

  onBytes(bytes: Uint8Array, nowMs: Ms): void {
    if (this.#held === undefined) {
      this.#write(bytes, nowMs)
      return
    }
    this.#held.push(bytes)
    this.#heldBytes += bytes.length
    const limitBytes = this.#facts.status < 400 ? HOLD_BYTES : HOLD_REFUSAL_BYTES
    if (this.#heldBytes > limitBytes) this.#passOn(nowMs)
  }

  onEnd(nowMs: Ms): void {
    const { answer, adapter, tally } = this.#exits
    if (this.#held === undefined) {
      for (const rest of this.#renamer?.end() ?? []) this.#exits.write(rest, nowMs)
      answer.end()
      this.#exits.finish(this.#refused ? 'client_error' : 'completed')
      return
    }
    const body = this.#bytes()
    if (this.#bounced(body)) return
    if (answer.started) {
      this.#tooLate(body)
      return
    }
    const { status, headers, dialect } = this.#facts
    if (!this.#refused) {
      const { usage, finishReason } = adapter.readWhole(dialect, body, headers)
      tally.usage = usage
      tally.finishReason = finishReason
    }
    answer.whole(status, headers, this.#renamer === undefined ? body : this.#renamer.whole(body))
    this.#exits.committed(body)
    this.#exits.finish(this.#refused ? 'client_error' : 'completed')
  }

  #passOn(nowMs: Ms): void {
    const body = this.#bytes()
    if (this.#bounced(body)) return
    const { answer } = this.#exits
    if (answer.started) {
      this.#tooLate(body)
      return
    }
    this.#held = undefined
    const { 'content-length': length, ...headers } = this.#facts.headers
    const fits = length !== undefined && this.#renamer === undefined
    answer.beginWhole(this.#facts.status, fits ? this.#facts.headers : headers)
    this.#write(body, nowMs)
    this.#exits.committed(body)
  }

  #write(bytes: Uint8Array, nowMs: Ms): void {
    if (this.#renamer === undefined) this.#exits.write(bytes, nowMs)
    else for (const piece of this.#renamer.feed(bytes)) this.#exits.write(piece, nowMs)
  }

  /** Classes the answer; true when it goes back for a second attempt. */
  #bounced(body: Uint8Array): boolean {
    const verdict = this.#exits.adapter.classify(this.#facts.status, body)
    switch (verdict.class) {
      case 'ok':
        return false
      case 'client_error':
        this.#refused = true
        return false
      case 'full':
        this.#exits.bounce('engine_full', verdict.message, false)
        return true
      case 'draining':
      case 'engine_error':
        this.#exits.bounce('engine_error', verdict.message, true)
        return true
      default:
        return verdict.class satisfies never
    }
  }

  #bytes(): Buffer {
    return Buffer.concat(this.#held ?? [], this.#heldBytes)
  }

  /** A heartbeat has promised a stream, and what came is none: all that can be said is an error event. */
  #tooLate(body: Uint8Array): void {
    const { answer, adapter } = this.#exits
    if (this.#refused) {
      answer.refuse('malformed', adapter.classify(this.#facts.status, body).message)
      this.#exits.finish('client_error')
    } else {
      answer.refuse('upstream_failed', 'the replica answered a request for a stream with something else')
      this.#exits.finish('upstream_failed')
    }
  }
}
