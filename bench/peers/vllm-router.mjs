/** Peer: vLLM's router in Rust, the less loaded of two where there are two; skipped when it is not installed. */
import { findProgram } from './installed.mjs'

export const vllmRouter = {
  name: 'vllm-router',
  missing: () =>
    findProgram('vllm-router') === undefined
      ? 'vllm-router is not installed (pip install vllm-router)'
      : undefined,
  command: ({ port, adminPort, upstreamPorts }) => [
    // It logs each pick whatever its own option says.
    '/usr/bin/env',
    'RUST_LOG=warn',
    findProgram('vllm-router'),
    ...['--host', '127.0.0.1', '--port', String(port), '--prometheus-port', String(adminPort)],
    ...[
      '--policy',
      upstreamPorts.length > 1 ? 'power_of_two' : 'round_robin',
      '--log-level',
      'warning',
      '--worker-urls',
    ],
    ...upstreamPorts.map((upstreamPort) => `http://127.0.0.1:${upstreamPort}`),
  ],
}
