/** llm-d's flow control: requests wait in order of deadline while the pool's metrics call it saturated. */
import { ttftTargetMs } from '../../core/request.ts'
import type { Scheduler } from '../../core/scheduler.ts'
import type { Ms } from '../../core/units.ts'
import type { Waiter } from '../../core/waiting-room.ts'
import { passive } from '../plain/passive.ts'
import { lowest, planQueue } from '../plain/queue.ts'
import { poolSaturation, type SaturationOptions } from './saturation.ts'

export interface SaturationGateOptions extends SaturationOptions {
  /** Longest wait, in ms: llm-d's request TTL, 60 s by default there. */
  readonly queueMs: Ms
}

export function createSaturationGate(options: SaturationGateOptions): Scheduler {
  return passive('saturation-gate', (state, nowMs) =>
    planQueue(state, nowMs, {
      queueMs: options.queueMs,
      order: (waiters) => [...waiters].sort((a, b) => deadlineAtMs(a) - deadlineAtMs(b)),
      choose: (_, ledgers) =>
        poolSaturation(ledgers, options) >= 1
          ? undefined
          : lowest(ledgers, (ledger) => ledger.inFlightSequences),
    }),
  )
}

/** Behind all that have a deadline come those without; nothing drops one whose deadline has passed. */
function deadlineAtMs({ offer }: Waiter): Ms {
  return offer.receivedAtMs + (ttftTargetMs(offer.slo, offer.promptTokens) ?? 3_600_000)
}
