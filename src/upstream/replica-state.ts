/** Derives the one state of a replica from all the signs there are. Pure: signs and time in, state and reason out. */
import type { ReplicaState } from '../core/replica.ts'
import type { Ms } from '../core/units.ts'
import type { BreakerState } from './breaker.ts'
import type { ScrapeView } from './scraper.ts'

/** What is known of a replica. Instants that never were are minus infinity. */
export interface ReplicaSigns {
  /** Taken out of the configuration or of DNS. */
  readonly removed: boolean
  readonly breaker: BreakerState
  readonly scrape: ScrapeView
  /** The engine said that it is going down. */
  readonly toldDrainingAtMs: Ms
  /** Exchanges under way, and since when there has been at least one. */
  readonly inFlight: number
  readonly busySinceMs: Ms
  /** Bytes of any exchange; a token is a byte. */
  readonly lastBytesAtMs: Ms
  readonly lastProbePassedAtMs: Ms
  /** A fault of the connection, as traffic met it. */
  readonly lastRefusedAtMs: Ms
  /** It was found silent, and has not proved itself since. */
  readonly silentSinceMs: Ms
  /** It has come back from the dead, or come new to a running fleet. */
  readonly returnedAtMs: Ms
  /** Exchanges that brought content since then. */
  readonly successesSinceReturn: number
}

export interface StateSettings {
  /** Silence with work under way after which a replica is suspect, when its work counter stands still too. */
  readonly silentMs: Ms
  /** The same for an engine whose work counter can't be seen: a long prefill looks like this as well. */
  readonly silentBlindMs: Ms
  readonly rampMs: Ms
  /** Successes that end the ramp early. */
  readonly rampSuccesses: number
}

export const STATE_DEFAULTS: StateSettings = {
  silentMs: 10_000,
  silentBlindMs: 30_000,
  rampMs: 10_000,
  rampSuccesses: 8,
}

export interface DerivedState {
  readonly state: ReplicaState
  /** For people: why it is not live. */
  readonly reason: string
}

/** Looks in a row that must find the port refused: one may meet a listener that is just being replaced. */
const REFUSALS = 2

/**
 * Only a refused port, the engine's own words and what traffic or a probe met take a replica out. A metrics page that
 * fails, lags or is foreign never does: it would take all of them out at once.
 */
export function deriveState(signs: ReplicaSigns, settings: StateSettings, nowMs: Ms): DerivedState {
  if (signs.removed) return { state: 'draining', reason: 'removed' }
  if (saidDraining(signs)) return { state: 'draining', reason: 'the engine says that it takes nothing new' }
  if (signs.breaker !== 'closed') return { state: 'down', reason: `breaker ${signs.breaker}` }
  const { scrape } = signs
  if (scrape.outcome === 'refused') {
    if (scrape.streak >= REFUSALS) return { state: 'down', reason: 'its port is refused' }
    return { state: 'suspect', reason: 'its port was refused' }
  }
  // A page that was read shows the port open again, though it shows no work.
  const openedAtMs = scrape.sampleAtMs ?? Number.NEGATIVE_INFINITY
  if (signs.lastRefusedAtMs > Math.max(lastProofMs(signs), openedAtMs))
    return { state: 'suspect', reason: 'its port was refused' }
  if (scrape.outcome === 'ok' && scrape.sample?.asleep === true) return { state: 'suspect', reason: 'asleep' }
  if (isSilent(signs, settings, nowMs)) return { state: 'suspect', reason: 'silent with work under way' }
  if (nowMs - signs.returnedAtMs < settings.rampMs && signs.successesSinceReturn < settings.rampSuccesses) {
    return { state: 'ramping', reason: 'just returned' }
  }
  return { state: 'live', reason: '' }
}

/** The last moment at which the replica was seen at work. */
export function lastProofMs(signs: ReplicaSigns): Ms {
  const seenMs = signs.scrape.progressAtMs ?? Number.NEGATIVE_INFINITY
  return Math.max(signs.lastBytesAtMs, signs.lastProbePassedAtMs, seenMs)
}

/**
 * Whether it holds work, and nothing has shown life in it for `limitMs`: no byte, no probe, no step. While its steps
 * can't be seen any answer to a look counts, since a long answer that does not stream looks like this as well.
 */
export function isMute(signs: ReplicaSigns, limitMs: Ms, nowMs: Ms): boolean {
  if (signs.inFlight === 0) return false
  const lifeMs = Math.max(lastProofMs(signs), signs.busySinceMs)
  const answeredMs = seesSteps(signs) ? lifeMs : (signs.scrape.answeredAtMs ?? lifeMs)
  return nowMs - Math.max(lifeMs, answeredMs) >= limitMs
}

function seesSteps({ scrape }: ReplicaSigns): boolean {
  return scrape.outcome === 'ok' && scrape.sample?.progressTotal !== undefined
}

function saidDraining(signs: ReplicaSigns): boolean {
  // Streams that it finishes prove nothing: only new work taken, or a new life, does.
  return signs.toldDrainingAtMs > signs.lastProbePassedAtMs && signs.toldDrainingAtMs > signs.returnedAtMs
}

/** Whether it holds work, and neither bytes nor its own counter have moved for too long. Sticks until it proves itself. */
export function isSilent(signs: ReplicaSigns, settings: StateSettings, nowMs: Ms): boolean {
  const proofMs = lastProofMs(signs)
  if (signs.silentSinceMs > proofMs) return true
  if (signs.inFlight === 0) return false
  const limitMs = seesSteps(signs) ? settings.silentMs : settings.silentBlindMs
  return nowMs - Math.max(proofMs, signs.busySinceMs) >= limitMs
}
