/** Draws every part of the page that changes, for one viewer's choices; each part goes out only when it has changed. */
import type { Ms } from '../../core/units.ts'
import type { RangeName } from '../../telemetry/timeline.ts'
import { decisionFigures, type Shown } from '../overview/decisions.ts'
import { type HistoryFigures, historyFigures } from '../overview/history.ts'
import { namesOf, type Overview, overview } from '../overview/overview.ts'
import type { AdminPorts } from '../ports.ts'
import { chartsRegion } from './charts-region.ts'
import { decisionsRegion } from './decisions-region.ts'
import { figuresRegion } from './figures-region.ts'
import { promisesRegion } from './promises-region.ts'
import { replicasRegion } from './replicas-region.ts'
import { eventsRegion, shadowRegion, stateRegion, waitingRegion } from './small-regions.ts'

export const REGION_NAMES = [
  'state',
  'figures',
  'promises',
  'charts',
  'waiting',
  'replicas',
  'shadow',
  'decisions',
  'events',
] as const
export type RegionName = (typeof REGION_NAMES)[number]
/** HTML by region. */
export type Regions = Readonly<Record<RegionName, string>>

/** What a viewer has chosen, and may see. */
export interface Choices {
  readonly range: RangeName
  readonly shown: Shown
  readonly mayReadDecisions: boolean
}

const DECISIONS_DRAWN = 10

/** Charts change with each step only, so they are drawn once a step. */
interface DrawnCharts {
  readonly endAtMs: Ms
  readonly newestEventAtMs: Ms
  readonly charts: string
  readonly shadow: string
}

export class RegionPainter {
  readonly #ports: AdminPorts
  readonly #charts = new Map<RangeName, DrawnCharts>()

  constructor(ports: AdminPorts) {
    this.#ports = ports
  }

  /** Reads this moment once; the function then draws it for any choices. */
  moment(): (choices: Choices) => Regions {
    const ports = this.#ports
    const now = overview(ports, false)
    const origin = now.unixOriginMs
    const common = {
      state: String(stateRegion(now)),
      figures: String(figuresRegion(now)),
      promises: String(promisesRegion(now.promises)),
      waiting: String(waitingRegion(now)),
      replicas: String(replicasRegion(now.replicas)),
      events: String(eventsRegion(now.events, origin)),
    }
    return ({ range, shown, mayReadDecisions }) => {
      const { charts, shadow } = this.#chartsOf(range, now)
      const nameOf = namesOf(ports)
      const decisions = mayReadDecisions
        ? decisionFigures(ports.observer.decisions, { limit: DECISIONS_DRAWN, shown, nameOf })
        : null
      return { ...common, charts, shadow, decisions: String(decisionsRegion(decisions, origin)) }
    }
  }

  #chartsOf(range: RangeName, now: Overview): DrawnCharts {
    const { timeline, attainment } = this.#ports.observer
    const endAtMs = timeline.endAtMs(range, now.atMs)
    const newestEventAtMs = now.events[0]?.atMs ?? 0
    const known = this.#charts.get(range)
    if (known?.endAtMs === endAtMs && known.newestEventAtMs === newestEventAtMs) return known
    const figures = historyFigures(timeline.history(range, now.atMs), attainment)
    const fresh = { endAtMs, newestEventAtMs, ...this.#draw(figures, now) }
    this.#charts.set(range, fresh)
    return fresh
  }

  #draw(
    history: HistoryFigures,
    { events, unixOriginMs, estimate }: Overview,
  ): { charts: string; shadow: string } {
    const { periodMs } = this.#ports.observer.attainment.catalog
    const spanMs = history.stepMs * history.perSec.good.length
    return {
      charts: String(chartsRegion({ history, events, unixOriginMs, periodMs })),
      shadow: String(shadowRegion(history.shadow, spanMs, estimate)),
    }
  }
}
