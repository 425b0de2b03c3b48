/** What a relay asks of the two kinds of answers, streams and whole bodies, and what they may do to it. */
import type { BounceCause } from '../core/events.ts'
import type { SettleOutcome } from '../core/records.ts'
import type { Ms } from '../core/units.ts'
import type { EngineAdapter } from '../engines/adapter.ts'
import type { ClientAnswer } from './answer.ts'
import type { Tally } from './tally.ts'

/** Reads one answer of an engine, cut anywhere. Nothing is called after an exit was taken. */
export interface UpstreamBody {
  /** Bytes of this answer have gone to the client: no second attempt any more. */
  readonly started: boolean
  /** Whether a comment or an error event may be put behind what has gone out. */
  readonly betweenFrames: boolean
  /** How it ends, known as soon as its own end marker has come: whatever becomes of its sockets then is no fault. */
  readonly ended?: SettleOutcome | undefined
  onBytes(bytes: Uint8Array, nowMs: Ms): void
  onEnd(nowMs: Ms): void
}

/** The ways out of an attempt, and the way to the client. */
export interface BodyExits {
  readonly adapter: EngineAdapter
  readonly answer: ClientAnswer
  readonly tally: Tally
  write(bytes: Uint8Array, nowMs: Ms): void
  /** The first generated token is on its way to the client. */
  firstToken(): void
  /** The first bytes are going out: the request's own body is no longer needed. */
  committed(bytes: Uint8Array): void
  /** Nothing has gone out: somebody else may try. `blamed` when the replica itself is at fault. */
  bounce(cause: BounceCause, message: string, blamed: boolean): void
  /** The engine broke a stream of which content has gone out; the attempt goes on to its end. */
  broke(message: string): void
  /** The attempt is over; the answer has been ended. */
  finish(outcome: SettleOutcome): void
}
