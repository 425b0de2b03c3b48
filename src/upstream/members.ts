/** Turns the models of a configuration, with the addresses behind its DNS names, into the replicas that should exist. */
import type { EngineLimits } from '../core/replica.ts'
import type { PoolId } from '../core/request.ts'
import type { EngineKind } from '../engines/adapter.ts'

/** The part of a model's configuration that this folder reads. */
export interface ModelSource {
  readonly name: string
  readonly servedName: string
  readonly engineArgs: EngineLimits
  readonly replicas: readonly ReplicaPlace[]
}

export type ReplicaPlace =
  | { readonly kind: 'url'; readonly url: string; readonly key?: string; readonly engine: EngineKind }
  | {
      readonly kind: 'dns'
      readonly host: string
      readonly port: number
      readonly key?: string
      readonly engine: EngineKind
    }

/** A replica as it should be. Two of the same `identity` are the same replica, whatever models share it. */
export interface Wanted {
  readonly identity: string
  readonly url: string
  readonly key?: string
  readonly engine: EngineKind
  readonly pools: readonly PoolId[]
  readonly groupId: string
  readonly limits: EngineLimits
  readonly servedName: string
}

/** The addresses last found behind a name; undefined before the first answer. */
export type KnownAddresses = (host: string) => readonly string[] | undefined

function normalUrl(url: string): string {
  const parsed = new URL(url)
  return `${parsed.origin}${parsed.pathname.replace(/\/+$/, '')}`
}

function urlsOf(place: ReplicaPlace, known: KnownAddresses): readonly string[] {
  if (place.kind === 'url') return [normalUrl(place.url)]
  const addresses = known(place.host) ?? []
  return addresses.map(
    (address) => `http://${address.includes(':') ? `[${address}]` : address}:${place.port}`,
  )
}

/**
 * Every replica once, in the order of the file. A URL under several models joins all their pools, and takes the limits,
 * the served name (for probes) and the group from the first of them.
 */
export function wantedReplicas(models: readonly ModelSource[], known: KnownAddresses): readonly Wanted[] {
  const byIdentity = new Map<string, Wanted>()
  for (const model of models) {
    for (const place of model.replicas) {
      for (const url of urlsOf(place, known)) {
        // Another key or kind is another way to speak to it, and so another replica.
        const identity = `${place.engine} ${url} ${place.key ?? ''}`
        const before = byIdentity.get(identity)
        const pools = before === undefined ? [model.name] : [...new Set([...before.pools, model.name])]
        byIdentity.set(
          identity,
          before === undefined ? first(model, place, url, identity) : { ...before, pools },
        )
      }
    }
  }
  return [...byIdentity.values()]
}

function first(model: ModelSource, place: ReplicaPlace, url: string, identity: string): Wanted {
  return {
    identity,
    url,
    ...(place.key === undefined ? {} : { key: place.key }),
    engine: place.engine,
    pools: [model.name],
    groupId: `${model.name}/${place.engine}`,
    limits: model.engineArgs,
    servedName: model.servedName,
  }
}

/** Every DNS name in the models, once. */
export function dnsHosts(models: readonly ModelSource[]): readonly string[] {
  const hosts = models.flatMap((model) =>
    model.replicas.flatMap((place) => (place.kind === 'dns' ? [place.host] : [])),
  )
  return [...new Set(hosts)]
}
