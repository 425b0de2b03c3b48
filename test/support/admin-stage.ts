/** The admin port of a Sluice that is only its accounts: nothing to reload, nobody waits, nothing predicts. */
import type { Server } from 'node:http'
import { createAdaptorServer } from '@hono/node-server'
import { createAdminApp } from '../../src/admin/app.ts'
import type { Every } from '../../src/admin/console/live.ts'
import type { AdminPorts } from '../../src/admin/ports.ts'
import { closeServer } from '../../src/cli/listen.ts'
import { listenOnLoopback } from './loopback.ts'

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

/** Serves them on loopback; port 0 takes a free one. `every` turns the console's timer. */
export async function serveAdmin(ports: AdminPorts, port = 0, every?: Every): Promise<ServedAdmin> {
  const app = createAdminApp(ports, every)
  const server = createAdaptorServer({ fetch: app.fetch, overrideGlobalObjects: false }) as Server
  const url = `http://127.0.0.1:${await listenOnLoopback(server, port)}`
  return { url, close: () => closeServer(server) }
}
