/** Tells load balancers upstream how much to send here: JSON, HAProxy's agent protocol, and ORCA's response header. */
import { createServer, type Server } from 'node:net'
import { LEAST_WEIGHT_RATIO, type UpstreamWeight, weightPercent } from '../slo/upstream-weight.ts'

/** What /weight answers. */
export function weightJson({ ratio, headroom }: UpstreamWeight): object {
  return {
    weight_percent: weightPercent(ratio),
    weight_ratio: rounded(ratio),
    headroom_ratio: headroom === undefined ? null : rounded(headroom),
    least_weight_ratio: LEAST_WEIGHT_RATIO,
  }
}

/** An agent that hangs, or sends without end, holds nothing for longer than this. */
const AGENT_TIMEOUT_MS = 1000
const MOST_AGENTS = 64

/**
 * HAProxy's `agent-check`: whoever connects gets a line such as `75%`, which sets the weight relative to the configured
 * one. It never says `drain`, `maint` or `down`: whether to send anything at all is for the health check and for people.
 */
export function createAgentServer(weight: UpstreamWeight): Server {
  const server = createServer((socket) => {
    socket.setTimeout(AGENT_TIMEOUT_MS, () => socket.destroy())
    socket.on('error', () => socket.destroy())
    socket.resume()
    socket.end(`${weightPercent(weight.ratio)}%\n`)
  })
  server.maxConnections = MOST_AGENTS
  return server
}

function rounded(ratio: number): number {
  return Math.round(ratio * 1000) / 1000
}
