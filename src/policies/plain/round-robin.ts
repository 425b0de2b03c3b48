/** Every request at once to the next replica in turn: the bare fleet, whose capacity is 1x. */
import type { Scheduler } from '../../core/scheduler.ts'
import { passive } from './passive.ts'
import { planQueue } from './queue.ts'

export function createRoundRobin(): Scheduler {
  let turn = 0
  return passive('round-robin', (state, nowMs) =>
    planQueue(state, nowMs, { queueMs: 0, choose: (_, ledgers) => ledgers[turn++ % ledgers.length] }),
  )
}
