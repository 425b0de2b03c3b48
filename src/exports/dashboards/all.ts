/** Every dashboard by the name of its file. */
import { ENGINE_DASHBOARD } from './engine-dashboard.ts'
import { grafanaJson } from './grafana.ts'
import type { Dashboard } from './panel.ts'
import { SLO_DASHBOARD } from './slo-dashboard.ts'

export const DASHBOARDS = { slo: SLO_DASHBOARD, engines: ENGINE_DASHBOARD } as const satisfies Record<
  string,
  Dashboard
>

export type DashboardName = keyof typeof DASHBOARDS

/** The file that Grafana reads. */
export function dashboardText(name: DashboardName): string {
  return `${JSON.stringify(grafanaJson(DASHBOARDS[name]), undefined, 2)}\n`
}
