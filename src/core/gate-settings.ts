/** The part of the configuration that the gate itself obeys, as plain data. */
import type { Ms, Ratio, Tokens } from './units.ts'

/** A tenant's own ceilings; absent ones bind nothing. Already divided by `instances`. */
export interface TenantLimits {
  readonly concurrentRequests?: number
  readonly requestsPerSec?: number
  readonly tokensPerMin?: Tokens
}

/** Bounds of the waiting room. */
export interface WaitingLimits {
  readonly requests: number
  readonly bytes: number
  readonly tokens: Tokens
}

export interface GateSettings {
  readonly waiting: WaitingLimits
  /** Reroutes allowed as a share of the dispatches of the last `REROUTE_WINDOW_MS`, 0 to 1. */
  readonly rerouteBudgetRatio: Ratio
  readonly instances: number
  readonly tenants: Readonly<Record<string, TenantLimits>>
  /** Names the configuration in each record. */
  readonly configDigest: string
}

/** The window over which the reroute budget is kept (decision notes, F6: 10 % of dispatches per 10 s). */
export const REROUTE_WINDOW_MS: Ms = 10_000

/** Reroutes always allowed in a window, so that a quiet proxy can still use its second replica. */
export const REROUTE_FLOOR_REQUESTS = 3
