/** Runs the engine model against the real clock, with one timer for its next event. */
import type { Ms } from '../core/units.ts'
import type { EngineModel } from '../sim/engine-model.ts'
import type { EngineRejection, EngineRequest, SequenceView, StepReport } from '../sim/engine-types.ts'

/** Who wants to hear of one request. */
export interface TokenListener {
  /** A token of it, at that instant of the model's time. */
  onToken(sequence: SequenceView, finished: boolean, atMs: Ms): void
}

/** How late the real clock has been behind the model. */
export interface LoopLag {
  readonly lastMs: Ms
  readonly maxMs: Ms
  /** Time by which the model was held back, because the process could not keep up with it. */
  readonly stalledMs: Ms
}

/**
 * Lateness up to this is caught up, since timers fire a little late and a step's length must not drift. Beyond it the
 * model waits instead: several steps sent at once would claim a speed that no client has seen.
 */
const CAUGHT_UP_MS: Ms = 20

export class EngineLoop {
  readonly model: EngineModel
  readonly #clock: () => Ms
  readonly #speedRatio: number
  readonly #listeners = new Map<string, TokenListener>()
  readonly #onStep: (report: StepReport) => void
  #timer: NodeJS.Timeout | undefined
  #timerAtMs: Ms | undefined
  /** Clock reading at which the model's time was 0, moved on by pauses and stalls. */
  #originMs: Ms
  #pausedAtMs: Ms | undefined
  #lag = { lastMs: 0, maxMs: 0, stalledMs: 0 }

  /** `speedRatio` model milliseconds pass in one of the clock. `onStep` sees each step before its tokens go out. */
  constructor(model: EngineModel, clock: () => Ms, speedRatio: number, onStep: (report: StepReport) => void) {
    this.model = model
    this.#clock = clock
    this.#speedRatio = speedRatio
    this.#onStep = onStep
    this.#originMs = clock()
  }

  get lag(): LoopLag {
    return this.#lag
  }

  /** The model's present. */
  nowMs(): Ms {
    return ((this.#pausedAtMs ?? this.#clock()) - this.#originMs) * this.#speedRatio
  }

  submit(request: EngineRequest, listener: TokenListener): EngineRejection | 'accepted' {
    this.#advance()
    const answer = this.model.submit(request, this.nowMs())
    if (answer === 'accepted') this.#listeners.set(request.id, listener)
    this.#arm()
    return answer
  }

  /** Takes a request out at once. Idempotent. */
  abort(requestId: string): void {
    this.#listeners.delete(requestId)
    this.model.abort(requestId)
    this.#arm()
  }

  /** Stops the model's time; what is submitted meanwhile waits. */
  pause(): void {
    this.#advance()
    this.#pausedAtMs ??= this.#clock()
    this.#disarm()
  }

  resume(): void {
    if (this.#pausedAtMs === undefined) return
    this.#originMs += this.#clock() - this.#pausedAtMs
    this.#pausedAtMs = undefined
    this.#arm()
  }

  /** Ends it for good: no token comes any more. */
  stop(): void {
    this.pause()
    this.#listeners.clear()
  }

  #advance(): void {
    if (this.#pausedAtMs !== undefined) return
    const dueAtMs = this.model.nextEventAtMs()
    const lateMs = dueAtMs === undefined ? 0 : (this.nowMs() - dueAtMs) / this.#speedRatio
    if (dueAtMs === undefined || lateMs < 0) return
    this.#lag.lastMs = lateMs
    this.#lag.maxMs = Math.max(this.#lag.maxMs, lateMs)
    if (lateMs > CAUGHT_UP_MS) {
      this.#lag.stalledMs += lateMs
      this.#originMs += lateMs
    }
    this.model.advanceTo(this.nowMs(), (report) => this.#tell(report))
  }

  #tell(report: StepReport): void {
    this.#onStep(report)
    let finishedAt = 0
    for (const sequence of report.emitted) {
      const finished = report.finished[finishedAt] === sequence
      if (finished) finishedAt++
      this.#listeners.get(sequence.requestId)?.onToken(sequence, finished, report.endedAtMs)
    }
    for (const sequence of report.finished) {
      if (sequence.unfinishedSiblings === 0) this.#listeners.delete(sequence.requestId)
    }
  }

  #arm(): void {
    const dueAtMs = this.#pausedAtMs === undefined ? this.model.nextEventAtMs() : undefined
    if (dueAtMs === this.#timerAtMs && this.#timer !== undefined) return
    this.#disarm()
    if (dueAtMs === undefined) return
    const waitMs = Math.max(0, (dueAtMs - this.nowMs()) / this.#speedRatio)
    this.#timerAtMs = dueAtMs
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      this.#advance()
      this.#arm()
    }, waitMs)
  }

  #disarm(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#timerAtMs = undefined
  }
}
