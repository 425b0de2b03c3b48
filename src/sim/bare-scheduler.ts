/** A fleet without protection: every request goes straight to the next replica in turn. */
import type { GateState, Plan, Scheduler } from '../core/scheduler.ts'

/** Takes replicas in turn, admits at once, learns nothing. What is behind a plain load balancer. */
export function bareScheduler(): Scheduler {
  let turn = 0
  const plan = (state: GateState): Plan => {
    const intents: Plan['intents'][number][] = []
    for (const { offer, excluded } of state.waiting) {
      const open = [...state.replicas.values()].filter(
        ({ report }) =>
          report.state === 'live' &&
          report.pools.includes(offer.pool) &&
          !excluded.includes(report.replicaId),
      )
      const chosen = open[turn++ % Math.max(open.length, 1)]
      if (chosen === undefined) {
        intents.push({ kind: 'shed', requestId: offer.requestId, reason: 'no_replica', candidates: [] })
      } else {
        intents.push({
          kind: 'admit',
          requestId: offer.requestId,
          replicaId: chosen.replicaId,
          candidates: [],
        })
      }
    }
    return { intents }
  }
  return {
    name: 'bare',
    plan,
    trusted: () => false,
    firstToken: () => {},
    progress: () => {},
    dispatched: () => {},
    settled: () => {},
    bounced: () => {},
    retryAfterMs: () => 1000,
    replicaReset: () => {},
    snapshot: () => ({ turn }),
  }
}
