/** Prints what workers tell of themselves; counters are theirs, and start over with them. */
import type { GlobalKey, InstrumentSet } from './instruments.ts'
import type { WorkerSample } from './samples.ts'

export class WorkerMetrics {
  readonly #on: InstrumentSet<GlobalKey>['on']

  constructor(on: InstrumentSet<GlobalKey>['on']) {
    this.#on = on
  }

  refresh(workers: readonly WorkerSample[]): void {
    const on = this.#on
    const shown = [
      ...[on.workerUp, on.workerRestarts, on.workerRequests, on.workerAlone],
      ...[on.workerCpu, on.workerMemory, on.workerLag],
    ]
    for (const instrument of shown) instrument.reset()
    for (const sample of workers) {
      const worker = sample.name
      on.workerUp.set({ worker }, sample.up ? 1 : 0)
      on.workerRestarts.inc({ worker }, sample.restarts)
      on.workerRequests.inc({ worker }, sample.requests)
      on.workerAlone.inc({ worker }, sample.aloneRequests)
      on.workerCpu.inc({ worker }, sample.cpuSec)
      on.workerMemory.set({ worker }, sample.residentBytes)
      on.workerLag.set({ worker }, sample.loopLagP99Ms / 1000)
    }
  }
}
