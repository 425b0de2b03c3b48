/** Puts a Sluice of one process together: what decides and the edge that relays, not yet listening. */
import type { Config } from '../config/config.ts'
import { systemClock } from '../edge/clock.ts'
import { Edge } from '../edge/edge.ts'
import { createTokenRatio } from '../estimate/prompt-tokens.ts'
import type { Log } from '../telemetry/log.ts'
import { Brain, type TelemetryPorts } from './brain.ts'

export class Runtime extends Brain {
  readonly edge: Edge

  constructor(config: Config, log: Log, telemetry?: TelemetryPorts) {
    super(config, log, { telemetry })
    const edge = new Edge({
      settings: config,
      gate: this.gate,
      fleet: this.fleet,
      clock: systemClock,
      observer: this.observer,
      ratio: createTokenRatio(),
      rng: Math.random,
      ready: () => this.isReady,
      sampler: telemetry?.sampler,
      headroom: () => this.observer.weight.headroom,
    })
    this.edge = edge
    this.attach({
      tell: (event) => edge.dispatcher.tell(event),
      configure: (settings) => edge.configure(settings),
      holding: () => {
        const { clientConnections, buffers } = edge
        return { clientConnections, bodyBytes: buffers.heldBytes }
      },
      close: async () => {
        edge.drain.now()
        await edge.drain.begin(0)
        edge.dispatcher.close()
      },
    })
  }
}
