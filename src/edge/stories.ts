/** The requests between their offer and their last byte, and the wish to know when there are none. */
import type { BounceCause, PermitId } from '../core/events.ts'
import { PassingMap } from '../core/passing-map.ts'
import type { ExchangeFacts } from '../core/records.ts'
import type { RequestId } from '../core/request.ts'
import type { Ms } from '../core/units.ts'
import { saysDraining } from '../engines/failures.ts'
import type { ClientAnswer } from './answer.ts'
import { headerOf } from './classify.ts'
import type { Intake } from './intake.ts'
import type { Relay } from './relay.ts'
import type { RequestTrace } from './request-trace.ts'
import { parentOf } from './trace-context.ts'

/** How an attempt failed, and what was said then. */
export interface Failure {
  readonly cause: BounceCause
  readonly message: string
}

export interface Story {
  readonly intake: Intake
  readonly answer: ClientAnswer
  /** Where traces are kept. */
  readonly trace: RequestTrace | undefined
  /** Its attempt under way; absent while it waits. */
  relay?: Relay
  /** Of its last attempt. */
  lastFailure?: Failure
}

export class Stories {
  readonly #open = new PassingMap<RequestId, Story>()
  #onIdle: (() => void)[] = []

  get size(): number {
    return this.#open.size
  }

  get(requestId: RequestId): Story | undefined {
    return this.#open.get(requestId)
  }

  add(story: Story): void {
    this.#open.set(story.intake.offer.requestId, story)
  }

  /** In order of their offers. */
  [Symbol.iterator](): IterableIterator<[RequestId, Story]> {
    return this.#open.entries()
  }

  /** Forgets one and gives its bytes back; idempotent. Returns what the log is to say of its exchange. */
  close(requestId: RequestId): ExchangeFacts {
    const story = this.#open.get(requestId)
    if (story === undefined) return {}
    this.#open.delete(requestId)
    story.intake.body.release()
    story.answer.onLeft = () => {}
    if (this.#open.size === 0) for (const resolve of this.#onIdle.splice(0)) resolve()
    return exchangeFacts(story)
  }

  /** The same for whoever holds that permit. */
  closePermit(permitId: PermitId): void {
    for (const [requestId, { relay }] of this.#open) {
      if (relay?.permitId === permitId) this.close(requestId)
    }
  }

  /** Resolves as soon as none is open. */
  idle(): Promise<void> {
    if (this.#open.size === 0) return Promise.resolve()
    return new Promise((resolve) => this.#onIdle.push(resolve))
  }
}

function exchangeFacts({ intake, answer, relay, trace }: Story): ExchangeFacts {
  return {
    status: answer.status,
    finishReason: relay?.tally.finishReason,
    traceId: trace?.traceId ?? parentOf(headerOf(intake.headers, 'traceparent'))?.traceId,
    trace,
  }
}

/** A stream that still waits gets its 200 and a comment before something on the way cuts it. */
export function keepAlive({ intake, answer }: Story, nowMs: Ms): void {
  const { offer, settings } = intake
  if (!offer.streamed) return
  const spokeAtMs = Math.max(answer.wroteAtMs, offer.receivedAtMs)
  if (nowMs - spokeAtMs >= settings.timeouts.heartbeatAfterMs) answer.heartbeat(nowMs)
}

/** True when the request itself may be what failed: not where no connection stood, nor where an engine was full or going down. */
export function mayBeItsOwn({ cause, message }: Failure): boolean {
  return cause !== 'connect_failed' && cause !== 'engine_full' && !saysDraining(message)
}
