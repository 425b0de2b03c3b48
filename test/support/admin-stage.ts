/** The admin port of a Sluice that is only its accounts: nothing to reload, nobody waits, nothing predicts. */
import { createAdaptorServer } from '@hono/node-server'
import { createAdminApp } from '../../src/admin/app.ts'
import type { AdminPorts } from '../../src/admin/ports.ts'

type Accounts = Pick<AdminPorts, 'observer' | 'samples' | 'nowMs' | 'unixMs'>

/** Ports before those accounts, with more of them set as the caller likes. */
export function adminPorts(parts: Accounts & Partial<AdminPorts>): AdminPorts {
  return {
    waitingByClass: () => [],
    version: '0.1.0',
    mode: () => 'enforce',
    configDigest: () => 'abc',
    configLoaded: () => true,
    draining: () => false,
    token: () => undefined,
    reload: async () => ({ ok: false, problems: [] }),
    predictor: () => null,
    advice: () => [],
    ...parts,
  }
}

export interface ServedAdmin {
  readonly url: string
  close(): Promise<void>
}

/** Serves them on loopback; port 0 takes a free one. */
export async function serveAdmin(ports: AdminPorts, port = 0): Promise<ServedAdmin> {
  const app = createAdminApp(ports)
  const server = createAdaptorServer({ fetch: app.fetch, overrideGlobalObjects: false })
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  return {
    url: `http://127.0.0.1:${address.port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        if ('closeAllConnections' in server) server.closeAllConnections()
      }),
  }
}
