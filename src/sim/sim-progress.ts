/** What the streams of a virtual run have brought since the gates were last told. */
import type { GateEvent } from '../core/events.ts'
import type { Flight, ReplicaOfRun } from './sim-replica.ts'

export class ProgressReports {
  readonly #gates: number
  readonly #tell: (gateIndex: number, event: GateEvent) => void

  constructor(gates: number, tell: (gateIndex: number, event: GateEvent) => void) {
    this.#gates = gates
    this.#tell = tell
  }

  /** The stream has brought one more content event. */
  note(flight: Flight): void {
    if (flight.unreportedEvents++ === 0) flight.replica.unreported.push(flight)
  }

  /** Tells each gate of its streams on that replica. */
  flush(replica: ReplicaOfRun): void {
    if (replica.unreported.length === 0) return
    const unreported = replica.unreported.splice(0).filter((flight) => flight.unreportedEvents > 0)
    for (let gateIndex = 0; gateIndex < this.#gates; gateIndex++) {
      const own = unreported.filter((flight) => flight.gateIndex === gateIndex)
      if (own.length === 0) continue
      const permitIds = own.map((flight) => flight.permitId)
      const contentEvents = own.map((flight) => flight.unreportedEvents)
      this.#tell(gateIndex, { kind: 'progress', permitIds, contentEvents })
    }
    for (const flight of unreported) flight.unreportedEvents = 0
  }
}
