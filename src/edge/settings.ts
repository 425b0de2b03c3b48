/** The part of the configuration that the edge obeys, as plain data; the resolved Config has this shape. */
import type { SloClass } from '../core/request.ts'
import type { Ms } from '../core/units.ts'

export interface ModelSettings {
  readonly name: string
  readonly aliases: readonly string[]
  /** What the engine is asked for. */
  readonly servedName: string
  readonly adapters: readonly string[]
  /** Its engines order their queues by the priority of requests. */
  readonly priorityScheduling?: boolean
  /** Answers name the model as it was asked for. */
  readonly renameAnswers?: boolean
}

export interface ProductSettings {
  readonly name: string
  readonly match: {
    readonly header?: Readonly<Record<string, string>>
    readonly path?: string
    readonly tenant?: string
    readonly model?: string
  }
  readonly class: string
}

export type AuthSettings =
  | { readonly kind: 'keys' }
  | { readonly kind: 'none' }
  | { readonly kind: 'header'; readonly header: string; readonly trusted: readonly string[] }

export interface TenantSettings {
  readonly name: string
  /** SHA-256 of its keys in hex. */
  readonly keySha256: readonly string[]
  /** What it may use, preferred first; absent: everything. */
  readonly classes?: readonly string[]
  readonly models?: readonly string[]
  /** Fairness weight against other tenants; absent: 1. */
  readonly share?: number
  /** May set owned scheduling fields itself. */
  readonly scheduling: boolean
}

export interface EdgeSettings {
  readonly models: readonly ModelSettings[]
  readonly classes: Readonly<Record<string, SloClass>>
  readonly classesByModel: Readonly<Record<string, Readonly<Record<string, SloClass>>>>
  readonly defaultClass: string
  readonly products: readonly ProductSettings[]
  readonly auth: AuthSettings
  readonly tenants: readonly TenantSettings[]
  readonly limits: { readonly bodyBytes: number; readonly bufferedBytes: number; readonly requestMs: Ms }
  readonly timeouts: { readonly firstByteMs: Ms; readonly betweenBytesMs: Ms; readonly heartbeatAfterMs: Ms }
  readonly passthrough: readonly string[]
}
