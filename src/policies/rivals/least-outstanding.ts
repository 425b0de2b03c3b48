/** The plain balancer: every request at once to the replica with the fewest in flight. Shadow and off run it. */
import type { ReplicaLedger } from '../../core/ledger.ts'
import type { CandidateView } from '../../core/records.ts'
import type { GateState, Intent, Plan, Scheduler } from '../../core/scheduler.ts'
import type { Waiter } from '../../core/waiting-room.ts'
import { eligible, noReplica, passive } from './passive.ts'

export function createLeastOutstanding(): Scheduler {
  return passive('least-outstanding', (state): Plan => {
    const intents: Intent[] = []
    for (const waiter of state.waiting) {
      const ledger = fewestInFlight(waiter, state)
      if (ledger === undefined) intents.push(noReplica(waiter))
      else {
        intents.push({
          kind: 'admit',
          requestId: waiter.offer.requestId,
          replicaId: ledger.replicaId,
          candidates: [plainView(waiter, ledger)],
        })
      }
      // One at a time: the next choice must see this one in the ledger.
      break
    }
    return { intents }
  })
}

/** What a scheduler without predictions has seen of a replica. */
export function plainView(waiter: Waiter, ledger: ReplicaLedger): CandidateView {
  return {
    replicaId: ledger.replicaId,
    uncachedTokens: waiter.offer.promptTokens,
    backlogTokens: ledger.backlogTokens,
    runningSequences: ledger.decodingSequences,
    gate: 'ok',
  }
}

function fewestInFlight(waiter: Waiter, state: GateState): ReplicaLedger | undefined {
  let best: ReplicaLedger | undefined
  for (const ledger of eligible(waiter, state)) {
    if (best === undefined || ledger.inFlightSequences < best.inFlightSequences) best = ledger
  }
  return best
}
