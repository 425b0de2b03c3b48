/** The admin app, asked in memory, with parts to set and the console's timer in hand. */
import { createAdminApp } from '../../src/admin/app.ts'
import type { AdminPorts, ReloadResult } from '../../src/admin/ports.ts'
import { adminPorts } from '../support/admin-stage.ts'
import { rig } from '../telemetry/rig.ts'

export function setUp(change: Partial<AdminPorts> = {}) {
  const made = rig()
  const reloads: ReloadResult[] = []
  const timers = new Set<() => void>()
  const ports = adminPorts({
    observer: made.observer,
    samples: made.samples,
    reload: async () => {
      const result = { ok: true, digest: 'new' } as const
      reloads.push(result)
      return result
    },
    nowMs: () => made.clock.nowMs,
    unixMs: () => made.clock.unixMs,
    ...change,
  })
  const app = createAdminApp(ports, (_periodMs, run) => {
    timers.add(run)
    return () => timers.delete(run)
  })
  const get = async (path: string, init: RequestInit = {}) => await app.request(path, init)
  const json = async (path: string, init: RequestInit = {}) =>
    (await (await get(path, init)).json()) as Record<string, unknown>
  return {
    ...made,
    ports,
    get,
    json,
    reloads,
    timers,
    /** Lets the console draw once, as it does each second. */
    tick: () => {
      for (const run of timers) run()
    },
    post: (path: string, init = {}) => get(path, { method: 'POST', ...init }),
  }
}
