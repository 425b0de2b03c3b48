/** The promises of a configuration as objects of Pyrra (`pyrra.dev/v1alpha1`), and the one series that it lacks. */
import type { SloCatalog } from '../slo/attainment.ts'
import { type ClassPromise, promises } from './promises.ts'
import { braced, promDuration, select } from './promql.ts'
import type { RuleGroup } from './rule.ts'

/** Pyrra divides errors by all; Sluice counts all and good. Made of both at one instant, it agrees with either. */
const BAD_EVENTS = 'sluice:slo_bad_events_total'

/** A `PrometheusRule` that records the bad requests, and a `ServiceLevelObjective` for each promise. */
export function pyrraObjects(
  catalog: SloCatalog,
  labels: Readonly<Record<string, string>>,
): readonly object[] {
  const object = (apiVersion: string, kind: string, name: string, spec: object) => {
    // Pyrra hands its labels on to the rules that it makes, by which the operator then finds them.
    return {
      apiVersion,
      kind,
      metadata: { name, labels: { 'app.kubernetes.io/name': 'sluice', ...labels } },
      spec,
    }
  }
  return [
    object('monitoring.coreos.com/v1', 'PrometheusRule', 'sluice-bad-events', { groups: [badEvents()] }),
    ...promises(catalog).map((promise) =>
      object('pyrra.dev/v1alpha1', 'ServiceLevelObjective', promise.id, objective(promise, catalog)),
    ),
  ]
}

function badEvents(): RuleGroup {
  const all = { sli: 'all' } as const
  const expr = `${select('sloEvents', all)} - ${select('sloGoodEvents', all)}`
  return { name: 'sluice-bad-events', rules: [{ record: BAD_EVENTS, expr }] }
}

function objective(
  { model, className, objectivePercent, description }: ClassPromise,
  { periodMs }: SloCatalog,
): object {
  const labels = { model, class: className, sli: 'all' } as const
  return {
    description,
    target: String(objectivePercent),
    window: promDuration(periodMs),
    indicator: {
      ratio: {
        errors: { metric: `${BAD_EVENTS}${braced(labels)}` },
        total: { metric: select('sloEvents', labels) },
      },
    },
    alerting: { name: 'SluiceSloBurn' },
  }
}
