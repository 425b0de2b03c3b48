/** Keeps the addresses behind a DNS name up to date; a failing resolver changes nothing. */
import { lookup } from 'node:dns/promises'
import type { Ms } from '../core/units.ts'
import type { Clock, Stop } from './clock.ts'

/** All addresses behind a name. */
export type Resolver = (host: string) => Promise<readonly string[]>

export const systemResolver: Resolver = async (host) => {
  const found = await lookup(host, { all: true })
  return found.map(({ address }) => address)
}

export interface DiscoveryOptions {
  readonly host: string
  readonly resolve: Resolver
  readonly clock: Clock
  readonly periodMs?: Ms
  /** A changed set, sorted and without repeats. */
  onAddresses(addresses: readonly string[]): void
  /** Told once when resolving begins to fail, and once when it works again. */
  onTrouble(message: string | undefined): void
}

const PERIOD_MS: Ms = 10_000
/** Until the name has been resolved once, and after failures. */
const RETRY_MS: Ms = 1000

export interface Discovery {
  close(): void
}

/** Resolves at once, then again and again until closed. An empty answer counts as a failure. */
export function startDiscovery(options: DiscoveryOptions): Discovery {
  const { host, clock } = options
  let closed = false
  let troubled = false
  let known: readonly string[] = []
  let stop: Stop = () => undefined

  async function turn(): Promise<void> {
    let trouble: string | undefined
    try {
      const addresses = [...new Set(await options.resolve(host))].sort()
      if (closed) return
      if (addresses.length === 0) trouble = `${host} has no addresses`
      else if (addresses.join() !== known.join()) {
        known = addresses
        options.onAddresses(addresses)
      }
    } catch (error) {
      trouble = `${host} can't be resolved: ${error instanceof Error ? error.message : String(error)}`
    }
    if (closed) return
    if ((trouble !== undefined) !== troubled) {
      troubled = trouble !== undefined
      options.onTrouble(trouble)
    }
    stop = clock.after(troubled ? RETRY_MS : (options.periodMs ?? PERIOD_MS), () => void turn())
  }

  void turn()
  return {
    close: () => {
      closed = true
      stop()
    },
  }
}
