/** One replica: its sockets, breaker, scrape and probe, and the state that follows from them. */
import type { EngineLimits, ReplicaReport } from '../core/replica.ts'
import type { PoolId, ReplicaId } from '../core/request.ts'
import type { Ms } from '../core/units.ts'
import type { EngineAdapter } from '../engines/adapter.ts'
import { saysDraining } from '../engines/failures.ts'
import { BREAKER_DEFAULTS, type Breaker, type BreakerOptions, createBreaker } from './breaker.ts'
import type { Clock } from './clock.ts'
import { Connection } from './connection.ts'
import type { Blame, OpenRequest, Replica, UpstreamHandler, UpstreamStream } from './ports.ts'
import { PROBE_DEADLINE_MS, probe } from './probe.ts'
import {
  deriveState,
  isMute,
  isSilent,
  type ReplicaSigns,
  STATE_DEFAULTS,
  type StateSettings,
} from './replica-state.ts'
import { type Scraper, type ScrapeView, startScraper } from './scraper.ts'
import type { Traffic } from './traffic.ts'

const NEVER = Number.NEGATIVE_INFINITY
/** A suspect or draining replica is asked for a token this often. */
const PROBE_PERIOD_MS: Ms = 5_000
/** Streams of an engine whose port is refused are given up after this much silence. */
const STOPPED_SILENCE_MS: Ms = 2_000

/** What may be tuned, in tests above all. */
export interface ReplicaTuning {
  readonly breaker?: BreakerOptions
  readonly state?: StateSettings
  readonly scrapePeriodMs?: Ms
  readonly probePeriodMs?: Ms
  readonly probeDeadlineMs?: Ms
  readonly stoppedSilenceMs?: Ms
}

export interface ReplicaOptions {
  readonly id: ReplicaId
  readonly url: string
  readonly key?: string
  readonly adapter: EngineAdapter
  readonly connectTimeoutMs: Ms
  readonly clock: Clock
  /** It joins a fleet that is running already, so it begins with a ramp. */
  readonly late: boolean
  readonly staggerMs: Ms
  readonly tuning: ReplicaTuning
  /** Its exchanges, where they don't run on sockets of this process. */
  readonly traffic?: Traffic
  onChange(replica: UpstreamReplica): void
}

/** What the configuration says of it; may change while it runs. */
export interface Membership {
  readonly pools: readonly PoolId[]
  readonly groupId: string
  readonly limits: EngineLimits
  readonly servedName: string
}

export class UpstreamReplica implements Replica {
  readonly id: ReplicaId
  readonly name: string
  readonly adapter: EngineAdapter
  readonly url: string
  readonly #routes: ReadonlySet<string>
  readonly #clock: Clock
  readonly #tuning: ReplicaTuning
  readonly #traffic: Traffic
  /** Scrapes and probes have sockets of their own, so that their bytes are no sign of generated tokens. */
  readonly #control: Connection
  readonly #breaker: Breaker
  readonly #scraper: Scraper
  readonly #onChange: (replica: UpstreamReplica) => void
  #membership: Membership
  #removed = false
  #closed = false
  #toldDrainingAtMs: Ms = NEVER
  #lastProbePassedAtMs: Ms = NEVER
  #lastRefusedAtMs: Ms = NEVER
  #silentSinceMs: Ms = NEVER
  #returnedAtMs: Ms = NEVER
  #successesSinceReturn = 0
  #probing = false
  #probedAtMs: Ms
  #report: ReplicaReport
  /** What the report was made from. */
  #told: { readonly view: ScrapeView; readonly membership: Membership }
  #reason = ''

  constructor(options: ReplicaOptions, membership: Membership) {
    const { id, url, adapter, clock, tuning, connectTimeoutMs } = options
    this.id = id
    this.name = id
    this.adapter = adapter
    this.#routes = new Set(adapter.routes)
    this.url = url
    this.#clock = clock
    this.#tuning = tuning
    this.#onChange = options.onChange
    this.#membership = membership
    const connection = { url, connectTimeoutMs, ...(options.key === undefined ? {} : { key: options.key }) }
    this.#traffic = options.traffic ?? new Connection(connection, clock)
    this.#control = new Connection(connection, clock)
    this.#probedAtMs = clock.nowMs()
    if (options.late) this.#returnedAtMs = clock.nowMs()
    this.#breaker = createBreaker(
      tuning.breaker ?? BREAKER_DEFAULTS,
      () => this.#probeForBreaker(),
      (state) => this.#breakerChanged(state === 'closed'),
    )
    this.#scraper = startScraper({
      connection: this.#control,
      adapter,
      servedName: membership.servedName,
      clock,
      staggerMs: options.staggerMs,
      ...(tuning.scrapePeriodMs === undefined ? {} : { periodMs: tuning.scrapePeriodMs }),
      onView: (view) => this.#seen(view),
    })
    this.#told = { view: this.#scraper.view, membership }
    this.#report = this.#newReport(options.late ? 'ramping' : 'live')
  }

  get report(): ReplicaReport {
    return this.#report
  }
  /** Why it is not live, for people; empty when it is. */
  get reason(): string {
    return this.#reason
  }
  get scrape(): ScrapeView {
    return this.#scraper.view
  }
  get inFlight(): number {
    return this.#traffic.inFlight
  }
  get openSockets(): number {
    return this.#traffic.openSockets + this.#control.openSockets
  }

  open(request: OpenRequest, handler: UpstreamHandler): UpstreamStream {
    return this.#traffic.open(request, handler)
  }

  reportFault(fault: Blame): void {
    if (fault.cause === 'aborted' || this.#closed) return
    if (fault.cause === 'status' && saysDraining(fault.message)) {
      this.#toldDrainingAtMs = this.#clock.nowMs()
    } else {
      if (fault.cause === 'refused') this.#lastRefusedAtMs = this.#clock.nowMs()
      if (!mayBeRequestsOwn(fault)) this.#breaker.fault(fault.message)
    }
    this.refresh()
  }

  reportContent(): void {
    if (this.#closed) return
    this.#successesSinceReturn += 1
    if (this.#report.state === 'ramping') this.refresh()
  }

  reportSuccess(): void {
    if (!this.#closed) this.#breaker.success()
  }

  /** Takes what the configuration says now; undefined once it says nothing of this replica any more. */
  assign(membership: Membership | undefined): void {
    this.#removed = membership === undefined
    if (membership !== undefined) this.#membership = membership
    this.refresh()
  }

  /** Looks at all signs again and tells of a change. To be called a few times a second. */
  refresh(): void {
    if (this.#closed) return
    const settings = this.#tuning.state ?? STATE_DEFAULTS
    const nowMs = this.#clock.nowMs()
    const signs = this.#signs()
    if (!isSilent(signs, settings, nowMs)) this.#silentSinceMs = NEVER
    else if (this.#silentSinceMs === NEVER) this.#silentSinceMs = nowMs
    const { state, reason } = deriveState(signs, settings, nowMs)
    if (state === 'suspect' || (state === 'draining' && !this.#removed)) this.#probeAgain()
    const told = this.#told
    // Views and memberships are never changed in place, so the same one says the same.
    const same = told.view === signs.scrape && told.membership === this.#membership && this.#reason === reason
    if (same && this.#report.state === state) return
    this.#told = { view: signs.scrape, membership: this.#membership }
    this.#reason = reason
    this.#report = this.#newReport(state)
    this.#onChange(this)
  }

  /** Ends what it was sent and has been silent about when nothing has shown life in it for `limitMs`. */
  endMute(limitMs: Ms): void {
    if (!this.#closed && isMute(this.#signs(), limitMs, this.#clock.nowMs()))
      this.#traffic.breakOffSilent(limitMs, `the engine has shown no sign of life for ${limitMs} ms`)
  }

  /** Aborts what is under way and closes every socket and timer. */
  async close(): Promise<void> {
    this.#closed = true
    this.#scraper.close()
    this.#breaker.close()
    await Promise.all([this.#traffic.close(), this.#control.close()])
  }

  #signs(): ReplicaSigns {
    return {
      removed: this.#removed,
      breaker: this.#breaker.state,
      scrape: this.#scraper.view,
      toldDrainingAtMs: this.#toldDrainingAtMs,
      inFlight: this.#traffic.awaiting,
      busySinceMs: this.#traffic.busySinceMs,
      lastBytesAtMs: this.#traffic.lastBytesAtMs,
      lastProbePassedAtMs: this.#lastProbePassedAtMs,
      lastRefusedAtMs: this.#lastRefusedAtMs,
      silentSinceMs: this.#silentSinceMs,
      returnedAtMs: this.#returnedAtMs,
      successesSinceReturn: this.#successesSinceReturn,
    }
  }

  #newReport(state: ReplicaReport['state']): ReplicaReport {
    const { sample, sampleAtMs, limits: told, generation } = this.#scraper.view
    const { pools, groupId, limits } = this.#membership
    return {
      replicaId: this.id,
      pools,
      groupId,
      state,
      routes: this.#routes,
      // What the operator wrote down wins over what the pages say.
      limits: { ...told, ...sample?.limits, ...limits },
      generation,
      ...(sample === undefined || sampleAtMs === undefined
        ? {}
        : { gauges: { ...sample.gauges, seenAtMs: sampleAtMs } }),
    }
  }

  #seen(view: ScrapeView): void {
    if (view.generation !== this.#report.generation) this.#returned()
    if (view.outcome === 'refused' && view.streak > 1) {
      const quietMs = this.#tuning.stoppedSilenceMs ?? STOPPED_SILENCE_MS
      this.#traffic.breakOffSilent(quietMs, 'the engine has stopped: its port is refused')
    }
    this.refresh()
  }

  #breakerChanged(closed: boolean): void {
    if (closed) this.#returned()
    this.refresh()
  }

  #returned(): void {
    this.#returnedAtMs = this.#clock.nowMs()
    this.#successesSinceReturn = 0
  }

  #probeAgain(): void {
    const nowMs = this.#clock.nowMs()
    if (this.#probing || nowMs - this.#probedAtMs < (this.#tuning.probePeriodMs ?? PROBE_PERIOD_MS)) return
    void this.#probe().then(() => this.refresh())
  }

  async #probeForBreaker(): Promise<void> {
    const result = await this.#probe()
    if (!result.passed) throw new Error(result.message)
  }

  async #probe(): ReturnType<typeof probe> {
    this.#probing = true
    const deadlineMs = this.#tuning.probeDeadlineMs ?? PROBE_DEADLINE_MS
    const result = await probe(this.#control, this.adapter, this.#membership.servedName, deadlineMs)
    const nowMs = this.#clock.nowMs()
    this.#probing = false
    this.#probedAtMs = nowMs
    if (result.passed) this.#lastProbePassedAtMs = nowMs
    return result
  }
}

/**
 * What fails wherever it is sent may be at fault itself, and is held against one replica alone: a few such requests
 * would close a whole pool. No request keeps a connection from standing.
 */
function mayBeRequestsOwn(fault: Blame): boolean {
  return fault.suspect === true && !('phase' in fault && fault.phase === 'connect')
}
