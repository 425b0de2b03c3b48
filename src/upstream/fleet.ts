/** All replicas of a configuration: made, watched, drained and removed as it changes. */
import type { ReplicaGauges, ReplicaReport } from '../core/replica.ts'
import type { PoolId, ReplicaId } from '../core/request.ts'
import type { Ms } from '../core/units.ts'
import { engineAdapter } from '../engines/registry.ts'
import { type Clock, type Stop, systemClock } from './clock.ts'
import { type Discovery, type Resolver, startDiscovery, systemResolver } from './discovery.ts'
import { dnsHosts, type ModelSource, type Wanted, wantedReplicas } from './members.ts'
import type { Fleet, Replica } from './ports.ts'
import { type ReplicaTuning, UpstreamReplica } from './replica.ts'
import { SCRAPE_PERIOD_MS } from './scraper.ts'
import type { Traffic } from './traffic.ts'

/** The part of the configuration that this folder reads. */
export interface FleetConfig {
  readonly models: readonly ModelSource[]
  readonly timeouts: {
    readonly connectMs: Ms
    readonly drainMs: Ms
    readonly firstByteMs: Ms
    readonly betweenBytesMs: Ms
  }
}

/** A line for the log: the fleet tells of changes, never of each repetition. */
export type FleetNotice = (level: 'info' | 'warn', message: string, replicaId: ReplicaId | undefined) => void

export interface FleetOptions {
  readonly config: FleetConfig
  readonly clock?: Clock
  readonly resolve?: Resolver
  readonly tuning?: ReplicaTuning
  /** A replica came, changed or was seen anew; to be handed to the gate. Called for the first ones while the fleet is being built. */
  onReport(report: ReplicaReport): void
  /** A replica is gone for good, with all its exchanges. */
  onRemoved(replicaId: ReplicaId): void
  readonly onNotice?: FleetNotice
  /** Where the exchanges of a replica run, when not on sockets of this process. */
  readonly traffic?: (replicaId: ReplicaId) => Traffic
}

/** What operators see of a replica. */
export interface ReplicaStatus {
  readonly report: ReplicaReport
  readonly url: string
  readonly reason: string
  readonly inFlightRequests: number
  readonly scrape: { readonly outcome: string; readonly ageMs?: Ms; readonly message: string }
}

/** The whole fleet, as its owner holds it; the edge sees a `Fleet`. */
export interface ManagedFleet extends Fleet {
  /** Takes a new configuration: adds, reassigns, and drains what is no longer in it. */
  update(config: FleetConfig): void
  status(): readonly ReplicaStatus[]
  /** How a replica is reached; undefined when it is gone. */
  place(id: ReplicaId): Wanted | undefined
}

const TICK_MS: Ms = 250
/** Streams end by their own limits, which are looked at ten times a second, before their replica counts as mute. */
const STREAMS_FIRST_MS: Ms = 250

interface Member {
  readonly place: Wanted
  readonly replica: UpstreamReplica
  lastTold: string
  removedAtMs: Ms | undefined
}

class UpstreamFleet implements ManagedFleet {
  readonly #options: FleetOptions
  readonly #clock: Clock
  readonly #members = new Map<ReplicaId, Member>()
  readonly #discoveries = new Map<string, Discovery>()
  readonly #addresses = new Map<string, readonly string[]>()
  readonly #closing = new Set<Promise<void>>()
  readonly #stopTick: Stop
  #config: FleetConfig
  #started = false
  #closed = false

  constructor(options: FleetOptions) {
    this.#options = options
    this.#clock = options.clock ?? systemClock
    this.#config = options.config
    this.#stopTick = this.#clock.every(TICK_MS, () => this.#tick())
    this.update(options.config)
    this.#started = true
  }

  replica(id: ReplicaId): Replica | undefined {
    return this.#members.get(id)?.replica
  }

  reports(pool?: PoolId): readonly ReplicaReport[] {
    const reports = [...this.#members.values()].map((member) => member.replica.report)
    return pool === undefined ? reports : reports.filter((report) => report.pools.includes(pool))
  }

  gauges(id: ReplicaId): ReplicaGauges | undefined {
    return this.#members.get(id)?.replica.report.gauges
  }

  openSockets(id?: ReplicaId): number {
    if (id !== undefined) return this.#members.get(id)?.replica.openSockets ?? 0
    return [...this.#members.values()].reduce((sum, member) => sum + member.replica.openSockets, 0)
  }

  status(): readonly ReplicaStatus[] {
    const nowMs = this.#clock.nowMs()
    return [...this.#members.values()].map(({ replica }) => {
      const { outcome, message, sampleAtMs } = replica.scrape
      const age = sampleAtMs === undefined ? {} : { ageMs: nowMs - sampleAtMs }
      return {
        report: replica.report,
        url: replica.url,
        reason: replica.reason,
        inFlightRequests: replica.inFlight,
        scrape: { outcome, message, ...age },
      }
    })
  }

  place(id: ReplicaId): Wanted | undefined {
    return this.#members.get(id)?.place
  }

  update(config: FleetConfig): void {
    if (this.#closed) return
    this.#config = config
    this.#discover(dnsHosts(config.models))
    this.#reconcile()
  }

  async close(): Promise<void> {
    this.#closed = true
    this.#stopTick()
    for (const discovery of this.#discoveries.values()) discovery.close()
    this.#discoveries.clear()
    const replicas = [...this.#members.values()].map((member) => member.replica.close())
    this.#members.clear()
    await Promise.all([...replicas, ...this.#closing])
  }

  #discover(hosts: readonly string[]): void {
    for (const [host, discovery] of this.#discoveries) {
      if (hosts.includes(host)) continue
      discovery.close()
      this.#discoveries.delete(host)
      this.#addresses.delete(host)
    }
    for (const host of hosts) {
      if (this.#discoveries.has(host)) continue
      const discovery = startDiscovery({
        host,
        resolve: this.#options.resolve ?? systemResolver,
        clock: this.#clock,
        onAddresses: (addresses) => {
          this.#addresses.set(host, addresses)
          this.#reconcile()
        },
        onTrouble: (trouble) =>
          this.#notice(trouble === undefined ? 'info' : 'warn', trouble ?? `${host} resolves again`),
      })
      this.#discoveries.set(host, discovery)
    }
  }

  /** Makes the members what the configuration and DNS say now. */
  #reconcile(): void {
    const wanted = wantedReplicas(this.#config.models, (host) => this.#addresses.get(host))
    const byIdentity = new Map(wanted.map((entry) => [entry.identity, entry]))
    const present = new Set<string>()
    for (const member of this.#members.values()) {
      const entry = byIdentity.get(member.place.identity)
      present.add(member.place.identity)
      if (entry === undefined) member.removedAtMs ??= this.#clock.nowMs()
      else member.removedAtMs = undefined
      member.replica.assign(entry)
    }
    // The first ones have nobody beside them to lean on while they warm up.
    const late = this.#started && present.size > 0
    for (const entry of wanted) if (!present.has(entry.identity)) this.#add(entry, late)
    this.#tick()
  }

  #add(entry: Wanted, late: boolean): void {
    const { tuning = {} } = this.#options
    // Spread over the period by number, so that a hundred pages are not read in one turn of the loop.
    const staggerMs = ((this.#members.size * 37) % 100) * ((tuning.scrapePeriodMs ?? SCRAPE_PERIOD_MS) / 100)
    const id = this.#freeId(entry.pools[0] ?? 'replica')
    const traffic = this.#options.traffic?.(id)
    const replica = new UpstreamReplica(
      {
        id,
        url: entry.url,
        ...(entry.key === undefined ? {} : { key: entry.key }),
        adapter: engineAdapter(entry.engine),
        connectTimeoutMs: this.#config.timeouts.connectMs,
        clock: this.#clock,
        late,
        staggerMs,
        tuning,
        ...(traffic === undefined ? {} : { traffic }),
        onChange: (changed) => this.#changed(changed),
      },
      entry,
    )
    this.#members.set(replica.id, { place: entry, replica, lastTold: '', removedAtMs: undefined })
    this.#notice('info', `replica added at ${entry.url}`, replica.id)
    this.#changed(replica)
  }

  /**
   * The model's name and the lowest free number: short, stable over restarts, and no address. It goes into headers, so
   * what they can't carry is written as `_`.
   */
  #freeId(model: string): ReplicaId {
    const name = model.replace(/[^!-~]/g, '_')
    let number = 1
    while (this.#members.has(`${name}-${number}`)) number += 1
    return `${name}-${number}`
  }

  #changed(replica: UpstreamReplica): void {
    const member = this.#members.get(replica.id)
    if (member === undefined || this.#closed) return
    const { outcome, message } = replica.scrape
    const told = `${replica.report.state} ${replica.reason} ${outcome}`
    if (told !== member.lastTold) {
      member.lastTold = told
      const fine = replica.report.state === 'live' && (outcome === 'ok' || outcome === 'none')
      const scrape = outcome === 'ok' || outcome === 'none' ? outcome : `${outcome} (${message})`
      const why = replica.reason === '' ? '' : ` (${replica.reason})`
      this.#notice(
        fine ? 'info' : 'warn',
        `replica is ${replica.report.state}${why}, metrics ${scrape}`,
        replica.id,
      )
    }
    this.#options.onReport(replica.report)
  }

  #tick(): void {
    if (this.#closed) return
    const nowMs = this.#clock.nowMs()
    const { firstByteMs, betweenBytesMs, drainMs } = this.#config.timeouts
    for (const member of [...this.#members.values()]) {
      const { replica, removedAtMs } = member
      replica.endMute(Math.max(firstByteMs, betweenBytesMs) + STREAMS_FIRST_MS)
      if (removedAtMs === undefined) replica.refresh()
      else if (replica.inFlight === 0 || nowMs - removedAtMs >= drainMs) this.#remove(replica)
    }
  }

  #remove(replica: UpstreamReplica): void {
    this.#members.delete(replica.id)
    const closing: Promise<void> = replica.close().finally(() => this.#closing.delete(closing))
    this.#closing.add(closing)
    this.#notice('info', 'replica removed', replica.id)
    this.#options.onRemoved(replica.id)
  }

  #notice(level: 'info' | 'warn', message: string, replicaId?: ReplicaId): void {
    this.#options.onNotice?.(level, message, replicaId)
  }
}

/** Builds the fleet of a configuration and starts to watch it. */
export function createFleet(options: FleetOptions): ManagedFleet {
  return new UpstreamFleet(options)
}
