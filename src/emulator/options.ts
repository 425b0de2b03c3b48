/** How an emulated engine is started. */
import type { Ms, Ratio, Tokens } from '../core/units.ts'

export interface EngineServerOptions {
  /** Profile id; see `sim/profiles.ts`. */
  readonly profile: string
  /** Default 127.0.0.1. */
  readonly host?: string
  /** Default 0: any free port. */
  readonly port?: number
  /** Names that clients may ask for; the first labels the metrics. Default: `model`. */
  readonly servedModelNames?: readonly string[]
  readonly maxNumSeqs?: number
  readonly maxNumBatchedTokens?: Tokens
  readonly kvBlocks?: number
  readonly maxModelLen?: Tokens
  readonly policy?: 'fcfs' | 'priority'
  readonly prefixCaching?: boolean
  readonly maxNumQueuedReqs?: number
  readonly maxNumQueuedTokens?: Tokens
  /** Deviation of step times, default 0.05. */
  readonly jitterRatio?: Ratio
  /** Of step jitter, output lengths and words; default 1. */
  readonly seed?: number
  /** The engine runs that many times as fast as its profile; default 1. */
  readonly speed?: number
  /** As with `--api-key`: `/v1/*` wants it as a bearer token. */
  readonly apiKey?: string
  /** As with `--enable-request-id-headers`; default false. */
  readonly requestIdHeaders?: boolean
  /** As with `--enable-prompt-tokens-details`; default true, so that cached tokens are seen. */
  readonly promptTokensDetails?: boolean
  /** How long a crashed server still answers 500 before its port closes; default 200 ms, as measured. */
  readonly crashLingerMs?: Ms
  /** Monotonic milliseconds; default `performance.now`. */
  readonly clock?: () => Ms
}
