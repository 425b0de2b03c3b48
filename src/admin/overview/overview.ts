/** Everything that the console, `/overview` and `sluice top` show of this moment, as plain values. */
import type { Ms, Ratio, Tokens } from '../../core/units.ts'
import type { ShadowEstimate } from '../../telemetry/shadow-estimate.ts'
import type { AdminPorts, ClassWaiting } from '../ports.ts'
import { readiness } from '../readiness.ts'
import { type DecisionFigures, decisionFigures } from './decisions.ts'
import { type EventFigures, eventFigures } from './events.ts'
import { headline } from './headline.ts'
import { type PromiseFigures, promiseFigures } from './promises.ts'
import { type ReplicaFigures, replicaFigures } from './replicas.ts'
import type { NameOf } from './why.ts'

/** The last five minutes over all series. */
export interface TotalFigures {
  readonly judgedPerSec: number
  readonly goodPerSec: number
  readonly attainmentRatio?: Ratio
  /** Good among those that were let in: beside the attainment it tells lateness from refusals. */
  readonly admittedAttainmentRatio?: Ratio
  /** Refused, or gone before they were served, among all that were judged. */
  readonly unservedRatio?: Ratio
}

export interface Overview {
  /** Instants in it are on the clock of the records: add this for Unix ms. */
  readonly unixOriginMs: Ms
  readonly atMs: Ms
  readonly version: string
  readonly mode: string
  readonly configDigest: string
  readonly upMs: Ms
  readonly ready: boolean
  /** The state of the promises in a sentence. */
  readonly headline: string
  readonly total: TotalFigures
  readonly promises: readonly PromiseFigures[]
  readonly waiting: {
    readonly requests: number
    readonly tokens: Tokens
    readonly classes: readonly ClassWaiting[]
  }
  readonly replicas: readonly ReplicaFigures[]
  readonly events: readonly EventFigures[]
  /** What enforcing would attain, in shadow mode; null while nobody can say. */
  readonly estimate: ShadowEstimate | null
  /** The last ones; null for who has not shown the admin token. */
  readonly decisions: readonly DecisionFigures[] | null
}

const EVENTS_TOLD = 12
const DECISIONS_TOLD = 30

/** Reads all of it now. `withDecisions`: whether the asker may see them. */
export function overview(ports: AdminPorts, withDecisions: boolean): Overview {
  const { observer, samples } = ports
  const atMs = ports.nowMs()
  const unixMs = ports.unixMs()
  const promises = promiseFigures(observer.attainment, observer.health(), atMs)
  const { ready, checks } = readiness(ports)
  const { requests, tokens } = samples.waiting()
  return {
    unixOriginMs: unixMs - atMs,
    atMs,
    version: ports.version,
    mode: ports.mode(),
    configDigest: ports.configDigest(),
    upMs: Math.max(0, unixMs - samples.runtime().startedAtUnixSec * 1000),
    ready,
    headline: headline(
      promises,
      checks.filter(({ ok, fatal }) => !ok && fatal),
    ),
    total: totalFigures(ports, atMs),
    promises,
    waiting: { requests, tokens, classes: ports.waitingByClass() },
    replicas: replicaFigures(ports),
    estimate: observer.estimate ?? null,
    events: eventFigures(observer.journal.last(EVENTS_TOLD)),
    decisions: withDecisions
      ? decisionFigures(observer.decisions, { limit: DECISIONS_TOLD, shown: 'all', nameOf: namesOf(ports) })
      : null,
  }
}

/** Names of the replicas that there are now; one that has gone keeps its id. */
export function namesOf({ samples }: Pick<AdminPorts, 'samples'>): NameOf {
  const names = new Map(samples.replicas().map(({ id, name }) => [id, name]))
  return (replicaId) => names.get(replicaId) ?? replicaId
}

function totalFigures({ observer }: AdminPorts, nowMs: Ms): TotalFigures {
  const { sli, admitted, coveredMs, goodputRequestsPerSec } = observer.attainment.total('5m', nowMs)
  const judged = sli.all.good + sli.all.bad
  const served = admitted.good + admitted.bad
  return {
    judgedPerSec: coveredMs <= 0 ? 0 : (judged * 1000) / coveredMs,
    goodPerSec: goodputRequestsPerSec,
    ...(sli.all.attainmentRatio === undefined ? {} : { attainmentRatio: sli.all.attainmentRatio }),
    ...(admitted.attainmentRatio === undefined ? {} : { admittedAttainmentRatio: admitted.attainmentRatio }),
    ...(judged === 0 ? {} : { unservedRatio: (judged - served) / judged }),
  }
}
