/** Peer: the bare prototype that Sluice's cost is compared with. */
import { fileURLToPath } from 'node:url'

export const honoUndici = {
  name: 'hono-undici',
  compiles: true,
  missing: () => undefined,
  command: ({ port, upstreamPorts }) => [
    process.execPath,
    fileURLToPath(new URL('hono-undici-server.mjs', import.meta.url)),
    String(port),
    ...upstreamPorts.map(String),
  ],
}
