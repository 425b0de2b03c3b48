/** Stops traffic to a replica that keeps failing, and lets it back after a probe of our own has passed. */
import CircuitBreaker from 'opossum'
import type { Ms, Ratio } from '../core/units.ts'

export type BreakerState = 'closed' | 'open' | 'half-open'

export interface BreakerOptions {
  /** Share of faults in the window above which it opens. */
  readonly faultRatio: Ratio
  /** Fewer exchanges than this in the window say nothing; as many faults in a row say enough. */
  readonly minExchanges: number
  readonly windowMs: Ms
  /** How long it stays open before it is probed. */
  readonly resetMs: Ms
}

export const BREAKER_DEFAULTS: BreakerOptions = {
  faultRatio: 0.5,
  minExchanges: 5,
  windowMs: 10_000,
  resetMs: 5_000,
}

export interface Breaker {
  readonly state: BreakerState
  /** A fault of the replica. Told faults only: the caller leaves out full engines and clients that left. */
  fault(message: string): void
  /** An exchange that ended without a fault of the replica. Not told before its end: streams may break after content. */
  success(): void
  close(): void
}

/**
 * `probe` must settle in bounded time and reject when the replica failed it: a probe without an end would leave the
 * library half-open for ever. Client traffic never runs through the library's half-open state, since its outcome there
 * would be decided by whoever comes first; reports that come in while it is not closed are dropped.
 */
export function createBreaker(
  options: BreakerOptions,
  probe: () => Promise<void>,
  onChange: (state: BreakerState) => void,
): Breaker {
  const circuit = circuitOf(options)
  let faultsInARow = 0
  // Fired while open it would only count as a rejection and thin out the fault ratio.
  const takesReports = () => !(circuit.opened || circuit.halfOpen || circuit.isShutdown)
  circuit.on('open', () => onChange('open'))
  circuit.on('close', () => {
    faultsInARow = 0
    onChange('closed')
  })
  circuit.on('halfOpen', () => {
    onChange('half-open')
    // Its failure opens the circuit again with a new timer, its success closes it.
    circuit.fire(probe).catch(() => undefined)
  })
  return {
    get state() {
      return circuit.halfOpen ? 'half-open' : circuit.opened ? 'open' : 'closed'
    },
    fault: (message) => {
      if (takesReports()) circuit.fire(() => Promise.reject(new Error(message))).catch(() => undefined)
      faultsInARow += 1
      // A replica that fails fast looks idle and draws the traffic: the window still remembers its better days.
      if (faultsInARow >= options.minExchanges && !circuit.halfOpen && !circuit.isShutdown) circuit.open()
    },
    success: () => {
      faultsInARow = 0
      if (!takesReports()) return
      // What the library tells its books of a call that went well, without the promises of a call: each request has one.
      circuit.emit('fire', [])
      circuit.emit('success', undefined, 0)
    },
    close: () => {
      circuit.removeAllListeners()
      circuit.shutdown()
    },
  }
}

function circuitOf(options: BreakerOptions): CircuitBreaker<[() => Promise<void>], void> {
  return new CircuitBreaker((run) => run(), {
    // A timeout of its own would cut off slow but healthy work; the probe has its deadline.
    timeout: false,
    errorThresholdPercentage: options.faultRatio * 100,
    volumeThreshold: options.minExchanges,
    rollingCountTimeout: options.windowMs,
    resetTimeout: options.resetMs,
    rollingPercentilesEnabled: false,
    enableSnapshots: false,
  })
}
