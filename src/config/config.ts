/** The configuration as the rest of Sluice sees it: checked, defaulted and in units; made from the file by `load`. */
import type { TenantLimits, WaitingLimits } from '../core/gate-settings.ts'
import type { EngineLimits } from '../core/replica.ts'
import type { SloClass } from '../core/request.ts'
import type { Ms, Ratio } from '../core/units.ts'
import type { EngineKind } from '../engines/adapter.ts'

export type Mode = 'enforce' | 'shadow' | 'off'

export interface Address {
  readonly host: string
  readonly port: number
}

export type ReplicaSource =
  | { readonly kind: 'url'; readonly url: string; readonly key?: string; readonly engine: EngineKind }
  | {
      readonly kind: 'dns'
      readonly host: string
      readonly port: number
      readonly key?: string
      readonly engine: EngineKind
    }

export interface ModelConfig {
  readonly name: string
  readonly aliases: readonly string[]
  readonly servedName: string
  /** LoRA names that the same replicas serve; asked for by their own name. */
  readonly adapters: readonly string[]
  readonly profile?: string
  readonly engineArgs: EngineLimits
  /** The engines order their queues by a request's priority, which Sluice then sets. */
  readonly priorityScheduling: boolean
  /** Answers name the model as it was asked for, and not as its engine does. */
  readonly renameAnswers: boolean
  readonly replicas: readonly ReplicaSource[]
}

export interface ProductRule {
  readonly name: string
  readonly match: {
    readonly header?: Readonly<Record<string, string>>
    readonly path?: string
    readonly tenant?: string
    readonly model?: string
  }
  readonly class: string
}

export type AuthConfig =
  | { readonly kind: 'keys' }
  | { readonly kind: 'none' }
  | { readonly kind: 'header'; readonly header: string; readonly trusted: readonly string[] }

export interface TenantConfig {
  readonly name: string
  readonly keySha256: readonly string[]
  /** What it may use, preferred first; undefined: every class. */
  readonly classes?: readonly string[]
  readonly models?: readonly string[]
  readonly share: number
  readonly limits: TenantLimits
  /** May set owned scheduling fields (`priority`, …) itself. */
  readonly scheduling: boolean
}

export interface Config {
  /** Short hash of the file's meaning; names the configuration in each record. */
  readonly digest: string
  readonly listen: Address
  readonly admin: { readonly listen: Address; readonly agent?: Address; readonly token?: string }
  readonly mode: Mode
  readonly instances: number
  /** Processes that relay; with 1 the one that decides relays too. */
  readonly workers: number
  readonly models: readonly ModelConfig[]
  /** Every class by name, without per-model overrides. */
  readonly classes: Readonly<Record<string, SloClass>>
  /** Overrides: class name → model name → the class as it is for that model. */
  readonly classesByModel: Readonly<Record<string, Readonly<Record<string, SloClass>>>>
  readonly defaultClass: string
  readonly products: readonly ProductRule[]
  readonly auth: AuthConfig
  readonly tenants: readonly TenantConfig[]
  readonly slo: { readonly windowMs: Ms; readonly stateFile?: string }
  readonly limits: {
    readonly bodyBytes: number
    readonly bufferedBytes: number
    readonly waiting: WaitingLimits
    readonly requestMs: Ms
  }
  readonly timeouts: {
    readonly connectMs: Ms
    readonly firstByteMs: Ms
    readonly betweenBytesMs: Ms
    readonly heartbeatAfterMs: Ms
    readonly drainMs: Ms
  }
  readonly rerouteBudgetRatio: Ratio
  readonly passthrough: readonly string[]
}

/** The class as it is for a model: its override, else the class itself, else undefined. */
export function classFor(config: Config, className: string, model: string): SloClass | undefined {
  return config.classesByModel[className]?.[model] ?? config.classes[className]
}
