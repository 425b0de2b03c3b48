/** The requests between their offer and their last byte, and the wish to know when there are none. */
import type { RequestId } from '../core/request.ts'
import type { Ms } from '../core/units.ts'
import type { ClientAnswer } from './answer.ts'
import type { Intake } from './intake.ts'
import type { Relay } from './relay.ts'

export interface Story {
  readonly intake: Intake
  readonly answer: ClientAnswer
  /** Its attempt under way; absent while it waits. */
  relay?: Relay
  /** What its last attempt said when it failed. */
  lastFailure?: string
}

export class Stories {
  readonly #open = new Map<RequestId, Story>()
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

  /** Forgets one and gives its bytes back; idempotent. Telling the gate is the caller's part. */
  close(requestId: RequestId): void {
    const story = this.#open.get(requestId)
    if (story === undefined) return
    this.#open.delete(requestId)
    story.intake.body.release()
    story.answer.onLeft = () => {}
    if (this.#open.size > 0) return
    for (const resolve of this.#onIdle.splice(0)) resolve()
  }

  /** Resolves as soon as none is open. */
  idle(): Promise<void> {
    if (this.#open.size === 0) return Promise.resolve()
    return new Promise((resolve) => this.#onIdle.push(resolve))
  }
}

/** A stream that still waits gets its 200 and a comment before something on the way cuts it. */
export function keepAlive({ intake, answer }: Story, nowMs: Ms): void {
  const { offer, settings } = intake
  if (!offer.streamed) return
  const spokeAtMs = Math.max(answer.wroteAtMs, offer.receivedAtMs)
  if (nowMs - spokeAtMs >= settings.timeouts.heartbeatAfterMs) answer.heartbeat(nowMs)
}
