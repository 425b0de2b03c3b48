/** What the supervisor orders its children to do, and what they report; over the channel that Node gives a child. */
import type { DeciderPlace } from './uplink.ts'

/** `Config` is the configuration as the file has it; this folder never looks into it. */
export type Order<Config> =
  | { readonly kind: 'start'; readonly setup: Setup<Config> }
  /** The decider has a place to be reached at, for the first time or anew. */
  | { readonly kind: 'decider'; readonly place: DeciderPlace }
  | { readonly kind: 'configured'; readonly config: Config }
  | { readonly kind: 'reload'; readonly cause: 'signal' | 'watch' }
  | { readonly kind: 'drain'; readonly signal: string }
  | { readonly kind: 'hurry' }
  | { readonly kind: 'stop' }

export interface Setup<Config> {
  readonly config: Config
  /** The file of the configuration. */
  readonly path: string
  readonly logLevel: string
  readonly token: string
  /** From 1; 0 for the decider. */
  readonly worker: number
  /** Absent for the decider, and for workers while there is none. */
  readonly place?: DeciderPlace
  /** Where the decider before had its admin port, whatever the file says. */
  readonly adminPort?: number
}

export type ChildReport<Config> =
  /** It hears orders from now on; what was sent before may be lost. */
  | { readonly kind: 'awake' }
  /** It serves; the ports that it has. */
  | {
      readonly kind: 'ready'
      readonly port?: number
      readonly adminPort?: number
      readonly linkPort?: number
    }
  /** It can't serve and ends; for people. */
  | { readonly kind: 'failed'; readonly message: string }
  /** A reload has put this configuration into service. */
  | { readonly kind: 'configured'; readonly config: Config }
  | { readonly kind: 'beat' }
