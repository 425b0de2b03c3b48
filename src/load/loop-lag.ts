/** Measures how late this process's own event loop runs, since a late client reports its own delay as the server's. */
import { monitorEventLoopDelay } from 'node:perf_hooks'
import type { Ms } from '../core/units.ts'

/** Above this p99 the client was too late for its figures to be the server's. */
export const VALID_LOOP_LAG_P99_MS: Ms = 5

const RESOLUTION_MS: Ms = 10

export interface LoopLag {
  /** 99th percentile of the lag since the start, in ms; 0 before the first sample. */
  p99Ms(): Ms
  stop(): void
}

/** Starts measuring; to be stopped by whoever started it. */
export function measureLoopLag(): LoopLag {
  const delays = monitorEventLoopDelay({ resolution: RESOLUTION_MS })
  delays.enable()
  return {
    p99Ms: () => (delays.count === 0 ? 0 : Math.max(0, delays.percentile(99) / 1e6 - RESOLUTION_MS)),
    stop: () => {
      delays.disable()
    },
  }
}
