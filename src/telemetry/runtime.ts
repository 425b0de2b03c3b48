/** Watches the process itself: event loop delay, CPU time and memory. */
import { monitorEventLoopDelay } from 'node:perf_hooks'
import type { LoopLag, RuntimeSample } from './samples.ts'

export interface RuntimeMonitor {
  sample(): RuntimeSample
  /** Stops the monitor's timer; idempotent. */
  close(): void
}

/** How often the loop is looked at. */
const RESOLUTION_MS = 10
/** Each look wakes the loop: where several processes share the work, each looks less often. */
export const SHARED_RESOLUTION_MS = 100
/** Two scrapers should not halve each other's view: what is younger than this is read and kept. */
const KEEP_MS = 15_000

export function startRuntimeMonitor(resolutionMs = RESOLUTION_MS): RuntimeMonitor {
  const delay = monitorEventLoopDelay({ resolution: resolutionMs })
  delay.enable()
  let resetAtMs = performance.now()
  const startedAtUnixSec = performance.timeOrigin / 1000
  return {
    sample() {
      // The monitor measures whole intervals, so its own resolution is taken off; without a tick it reads as NaN.
      const lagMs = (ns: number): number => (Number.isFinite(ns) ? Math.max(0, ns / 1e6 - resolutionMs) : 0)
      const ticked = delay.count > 0
      const loopLag: LoopLag = {
        p50Ms: ticked ? lagMs(delay.percentile(50)) : 0,
        p99Ms: ticked ? lagMs(delay.percentile(99)) : 0,
        maxMs: ticked ? lagMs(delay.max) : 0,
      }
      if (performance.now() - resetAtMs >= KEEP_MS) {
        delay.reset()
        resetAtMs = performance.now()
      }
      const { user, system } = process.cpuUsage()
      const residentBytes = process.memoryUsage.rss()
      return { loopLag, cpuSec: (user + system) / 1e6, residentBytes, startedAtUnixSec }
    },
    close() {
      delay.disable()
    },
  }
}
