/** The gate as the dispatcher drives it, wherever the decision is made. */
import type { GateEffect } from '../core/effects.ts'
import type { GateEvent } from '../core/events.ts'
import type { Ms } from '../core/units.ts'

export interface GatePort {
  /** What is to be done at once. A gate elsewhere has what it wants done later carried out by `Dispatcher.carryOut`. */
  handle(event: GateEvent, nowMs: Ms): readonly GateEffect[]
}
