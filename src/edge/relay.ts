/** One attempt at one replica: opens the exchange, passes its answer to the client, and leaves by exactly one exit. */
import type { BounceCause, PermitId } from '../core/events.ts'
import type { SettleOutcome, SettleReport } from '../core/records.ts'
import type { Ms } from '../core/units.ts'
import type { ResponseHeaders } from '../engines/adapter.ts'
import { renamingTap } from '../engines/rename.ts'
import { spliceBody } from '../engines/splice.ts'
import type { Blame, Replica, UpstreamFault, UpstreamHandler, UpstreamStream } from '../upstream/ports.ts'
import type { ClientAnswer } from './answer.ts'
import type { Clock } from './clock.ts'
import { EncodedBody, isEncoded } from './encoded-body.ts'
import type { Intake } from './intake.ts'
import { bodyEdits, injectsUsage, outboundHeaders } from './outbound.ts'
import { PauseWatch } from './pause-watch.ts'
import { engineRequestId } from './request-id.ts'
import type { TraceHeaders } from './request-trace.ts'
import { isEventStream, StreamBody } from './stream-body.ts'
import { newTally, reportOf } from './tally.ts'
import type { BodyExits, UpstreamBody } from './upstream-body.ts'
import { WholeBody } from './whole-body.ts'

/** Whoever owns the attempt. Of `bounced` and `settled` exactly one is called, once. */
export interface RelayOwner {
  firstToken(relay: Relay): void
  /** Its first bytes are going to the client: the request's body may be forgotten. */
  committed(relay: Relay, bytes: Uint8Array): void
  bounced(relay: Relay, cause: BounceCause, message: string): void
  settled(relay: Relay, report: SettleReport): void
}

export interface RelayOptions {
  readonly permitId: PermitId
  readonly intake: Intake
  readonly answer: ClientAnswer
  readonly replica: Replica
  /** Another replica has failed with this request, which may be what fails. */
  readonly suspect: boolean
  readonly clock: Clock
  readonly owner: RelayOwner
}

export class Relay implements UpstreamHandler, BodyExits {
  readonly permitId: PermitId
  readonly intake: Intake
  readonly answer: ClientAnswer
  readonly replica: Replica
  readonly #suspect: boolean
  readonly tally = newTally()
  readonly #clock: Clock
  readonly #owner: RelayOwner
  #stream: UpstreamStream | undefined
  #body: UpstreamBody | undefined
  #over = false
  /** The exchange has ended by itself: there is nothing left to abort. */
  #closed = false
  /** The breaker has heard of it: an error event and the reset behind it are one fault. */
  #blamed = false
  /** Its first token is on its way to the client, and its owner has not heard of it. */
  #untold = false
  #heardAtMs: Ms
  readonly #pauses = new PauseWatch()

  constructor(options: RelayOptions) {
    this.permitId = options.permitId
    this.intake = options.intake
    this.answer = options.answer
    this.replica = options.replica
    this.#suspect = options.suspect
    this.#clock = options.clock
    this.#owner = options.owner
    this.#heardAtMs = options.clock.nowMs()
  }

  get adapter(): Replica['adapter'] {
    return this.replica.adapter
  }

  /** What it has to tell of its progress, its owner may hear: its first token comes before all that. */
  get progresses(): boolean {
    return this.tally.untoldEvents > 0 && !this.#untold
  }

  /** Sends the request, with `trace` for the client's own trace headers. Whatever comes of it comes later. */
  open(trace?: TraceHeaders): void {
    const { headers, body, outbound, offer, settings } = this.intake
    const { route, scheduling } = outbound
    const { firstByteMs, betweenBytesMs } = settings.timeouts
    const engineId = engineRequestId(offer.requestId, this.permitId)
    this.answer.onDrain = () => this.#resume()
    this.#stream = this.replica.open(
      {
        method: 'POST',
        path: route.path,
        headers: outboundHeaders(headers, this.adapter, { scheduling }, engineId, trace),
        body: spliceBody(body.bytes, bodyEdits(outbound, this.adapter)),
        // The sweep below knows more (content, comments, our own pauses); these are its safety net.
        firstByteTimeoutMs: this.#firstByteMs() * 1.5,
        betweenBytesTimeoutMs: Math.max(firstByteMs, betweenBytesMs) * 1.5,
      },
      this,
    )
  }

  onHeaders(status: number, headers: ResponseHeaders): void {
    if (this.#over) return
    this.#heardAtMs = this.#clock.nowMs()
    const { offer, outbound } = this.intake
    const { dialect } = outbound.route
    const streams = status === 200 && offer.streamed && isEventStream(headers)
    const { rename } = outbound
    if (!streams) this.#body = new WholeBody({ status, headers, dialect, rename }, this)
    else if (isEncoded(headers)) this.#body = new EncodedBody(headers, this)
    else {
      const tap = this.adapter.createTap({ dialect, stripUsage: injectsUsage(outbound) })
      this.#body = new StreamBody(rename === undefined ? tap : renamingTap(tap, rename), headers, this)
    }
  }

  onBytes(bytes: Uint8Array): void {
    if (this.#over) return
    const nowMs = this.#clock.nowMs()
    this.#heardAtMs = nowMs
    this.#body?.onBytes(bytes, nowMs)
  }

  onEnd(): void {
    this.#closed = true
    if (!this.#over) this.#body?.onEnd(this.#clock.nowMs())
  }

  onFault(fault: UpstreamFault): void {
    this.#closed = true
    if (this.#over || this.#hasEnded()) return
    const broken = fault.cause === 'silent' ? 'silent' : 'reset'
    const cause = fault.phase === 'connect' ? 'connect_failed' : broken
    const timedOut = fault.cause === 'timeout' && cause === 'reset'
    const message = `${this.replica.name}: ${fault.message}`
    if (timedOut || this.#body?.started === true) {
      this.#blame(fault)
      this.#giveUp(timedOut ? 'upstream_timeout' : 'upstream_failed', message)
    } else this.#bounce(cause, message, fault)
  }

  /** Looks after time: silence of either side and heartbeats. To be called a few times a second. */
  sweep(nowMs: Ms): void {
    if (this.#over) return
    const { offer, settings } = this.intake
    const { betweenBytesMs, heartbeatAfterMs } = settings.timeouts
    const { sinceMs } = this.#pauses
    if (sinceMs !== undefined) {
      if (nowMs - sinceMs > betweenBytesMs) this.#dropStalledClient()
      return
    }
    const started = this.#body?.started === true
    const limitMs = started ? betweenBytesMs : this.#firstByteMs()
    if (nowMs - this.#heardAtMs > limitMs) {
      if (this.#hasEnded()) return
      const before = offer.streamed ? 'timeouts.first_byte' : 'limits.request'
      const limit = started ? 'timeouts.between_bytes' : before
      const silence = `has sent nothing for ${limitMs} ms (${limit})`
      this.#blame({ cause: 'no_progress', message: silence })
      this.#giveUp('upstream_timeout', `${this.replica.name} ${silence}`)
      return
    }
    if (!offer.streamed || this.#body?.betweenFrames === false) return
    const spokeAtMs = Math.max(this.answer.wroteAtMs, offer.receivedAtMs)
    if (nowMs - spokeAtMs >= heartbeatAfterMs) this.answer.heartbeat(nowMs)
  }

  /** The client is gone: nothing more is generated for it. */
  clientLeft(): void {
    this.finish(this.#body?.ended ?? 'client_left')
  }

  /** `limits.request` is over. */
  expire(): void {
    this.#giveUp('upstream_timeout', 'the request took longer than limits.request')
  }

  /** Shutting down, and the time for finishing is over. */
  drain(): void {
    this.#giveUp('draining', 'this Sluice is shutting down')
  }

  write(bytes: Uint8Array, nowMs: Ms): void {
    if (!this.answer.write(bytes, nowMs)) this.#pause(nowMs)
  }

  /**
   * Node writes out what a turn has written once the turn is over. The bookkeeping comes behind that, so that the client
   * does not wait for it, or before the end when that came with the same bytes.
   */
  firstToken(): void {
    this.replica.reportContent()
    this.#untold = true
    process.nextTick(() => this.#tellFirstToken())
  }

  committed(bytes: Uint8Array): void {
    this.#owner.committed(this, bytes)
  }

  bounce(cause: BounceCause, message: string, blamed: boolean): void {
    this.#bounce(cause, `${this.replica.name}: ${message}`, blamed ? { cause: 'status', message } : undefined)
  }

  broke(message: string): void {
    this.#blame({ cause: 'status', message })
  }

  finish(outcome: SettleOutcome): void {
    if (this.#over) return
    this.#leave()
    const streamed = this.tally.firstTokenAtMs !== undefined
    if (outcome === 'completed' && !streamed) this.replica.reportContent()
    // Not at the first content: a stream may break afterwards. Of a suspect its failures would not count either.
    const passed = (outcome === 'completed' || streamed) && !this.#blamed
    if (passed && !this.#suspect) this.replica.reportSuccess()
    this.#owner.settled(this, reportOf(this.tally, outcome, this.#clock.nowMs()))
  }

  #tellFirstToken(): void {
    if (!this.#untold) return
    this.#untold = false
    this.#owner.firstToken(this)
  }

  #blame(fault: Blame): void {
    if (this.#blamed) return
    this.#blamed = true
    this.replica.reportFault(this.#suspect ? { ...fault, suspect: true } : fault)
  }

  #bounce(cause: BounceCause, message: string, fault?: Blame): void {
    if (this.#over) return
    if (fault !== undefined) this.#blame(fault)
    this.#leave()
    this.#owner.bounced(this, cause, message)
  }

  /** Ends it as its own end marker has said, when that has come. */
  #hasEnded(): boolean {
    const ended = this.#body?.ended
    if (ended === undefined) return false
    this.answer.end()
    this.finish(ended)
    return true
  }

  /** Ends it from our side: with words while they can still be said, else by a cut. */
  #giveUp(code: 'upstream_timeout' | 'upstream_failed' | 'draining', message: string): void {
    if (this.#over || this.#hasEnded()) return
    const started = this.#body?.started === true
    if (!started) this.answer.refuse(code, message)
    else if (this.#body?.betweenFrames === true) this.answer.endWithEvent(code, message)
    else this.answer.cut()
    this.finish(started && code !== 'draining' ? 'truncated' : code)
  }

  #dropStalledClient(): void {
    this.tally.slowReader = true
    this.answer.cut()
    this.finish('client_left')
  }

  #leave(): void {
    this.#over = true
    this.#countPause()
    this.answer.onDrain = () => {}
    if (!this.#closed) this.#stream?.abort()
    this.#tellFirstToken()
  }

  #pause(nowMs: Ms): void {
    if (this.#over || this.#pauses.sinceMs !== undefined) return
    this.#pauses.begin(nowMs)
    this.#stream?.pause()
  }

  #resume(): void {
    if (this.#pauses.sinceMs === undefined) return
    this.#countPause()
    this.#heardAtMs = this.#clock.nowMs()
    this.#stream?.resume()
  }

  #countPause(): void {
    if (this.#pauses.sinceMs === undefined) return
    this.#pauses.end(this.#clock.nowMs())
    if (this.#pauses.slow) this.tally.slowReader = true
  }

  /** An answer that does not stream says nothing before it is complete, so only the whole limit binds it. */
  #firstByteMs(): Ms {
    const { limits, timeouts } = this.intake.settings
    return this.intake.offer.streamed ? timeouts.firstByteMs : limits.requestMs
  }
}
