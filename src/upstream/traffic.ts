/** The exchanges with one replica as its state sees them: on sockets of this process, or elsewhere and told of. */
import type { Ms } from '../core/units.ts'
import type { OpenRequest, UpstreamHandler, UpstreamStream } from './ports.ts'

export interface Traffic {
  /** Exchanges under way. */
  readonly inFlight: number
  /** Exchanges that wait for the engine, and not for us. */
  readonly awaiting: number
  /** Since when exchanges have been waiting for the engine, without a pause. */
  readonly busySinceMs: Ms
  /** When bytes last came on any exchange; minus infinity before the first. */
  readonly lastBytesAtMs: Ms
  readonly openSockets: number
  open(request: OpenRequest, handler: UpstreamHandler): UpstreamStream
  /** Ends the exchanges on which nothing has come for `quietMs`. */
  breakOffSilent(quietMs: Ms, message: string): void
  close(): Promise<void>
}
