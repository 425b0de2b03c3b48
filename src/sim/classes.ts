/** The promises of the five workloads when nobody configures others. */
import type { SloClass } from '../core/request.ts'

/** Class name → promise; the values that a configuration file without `classes` has. */
export const WORKLOAD_CLASSES: Readonly<Record<string, SloClass>> = {
  chat: promise('chat', { ttftMs: 500, tpotMs: 50, objectiveRatio: 0.99 }),
  voice: promise('voice', { ttftMs: 300, tpotMs: 60, objectiveRatio: 0.995, weight: 4 }),
  autocomplete: promise('autocomplete', { ttftMs: 300, objectiveRatio: 0.99 }),
  agent: promise('agent', {
    ttftMs: 2000,
    ttftPer1kTokensMs: 250,
    e2eMs: 20_000,
    objectiveRatio: 0.98,
    overload: 'wait',
    maxWaitMs: 30_000,
  }),
  batch: promise('batch', { overload: 'wait', maxWaitMs: 600_000 }),
}

function promise(name: string, targets: Partial<SloClass>): SloClass {
  return { name, ttftPer1kTokensMs: 0, weight: 1, overload: 'shed', maxWaitMs: 30_000, ...targets }
}
