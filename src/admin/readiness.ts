/** Says whether traffic should be sent here, and which models can be served. */
import { takesWork } from '../core/eligible.ts'
import type { AdminPorts } from './ports.ts'

export interface Check {
  readonly name: string
  readonly ok: boolean
  /** A check that only names a trouble does not make the whole unready. */
  readonly fatal: boolean
  readonly detail: string
}

export interface ModelLiveness {
  readonly model: string
  readonly live: number
  readonly replicas: number
}

/** How many replicas of each model take work now. */
function modelLiveness(ports: AdminPorts): readonly ModelLiveness[] {
  const replicas = ports.samples.replicas()
  return ports.observer.attainment.catalog.models.map((model) => {
    const own = replicas.filter((replica) => replica.models.includes(model))
    const live = own.filter(takesWork)
    return { model, live: live.length, replicas: own.length }
  })
}

/** Ready: configuration loaded, at least one model with a live replica, not draining. A model that is down is named. */
export function readiness(ports: AdminPorts): { readonly ready: boolean; readonly checks: readonly Check[] } {
  const models = modelLiveness(ports)
  const loaded = ports.configLoaded()
  const draining = ports.draining()
  const anyLive = models.some(({ live }) => live > 0)
  const checks: Check[] = [
    { name: 'config', ok: loaded, fatal: true, detail: loaded ? 'loaded' : 'no valid configuration yet' },
    { name: 'draining', ok: !draining, fatal: true, detail: draining ? 'shutting down' : 'no' },
    {
      name: 'replicas',
      ok: anyLive,
      fatal: true,
      detail: anyLive ? 'some model can be served' : 'no model has a live replica; see /replicas',
    },
    ...models.map(({ model, live, replicas }) => {
      return {
        name: `model ${model}`,
        ok: live > 0,
        fatal: false,
        detail: `${live} of ${replicas} replicas live`,
      }
    }),
  ]
  return { ready: checks.every((check) => check.ok || !check.fatal), checks }
}

/** One line a check, as probes of Kubernetes print them. */
export function checksText(checks: readonly Check[]): string {
  const lines = checks.map(
    ({ name, ok, fatal, detail }) => `[${ok ? '+' : fatal ? '-' : '!'}] ${name}: ${detail}`,
  )
  return `${lines.join('\n')}\n`
}
