/** Every promise of a configuration, one a model and class with an objective, named as other tools want it. */
import type { SloClass } from '../core/request.ts'
import { hasTargets } from '../core/request.ts'
import type { Ratio } from '../core/units.ts'
import type { SloCatalog } from '../slo/attainment.ts'
import { plainNumber } from './promql.ts'

export interface ClassPromise {
  readonly model: string
  readonly className: string
  /** Model and class in lower case with `-` for what is neither letter nor digit; unique in the configuration. */
  readonly id: string
  readonly objectiveRatio: Ratio
  readonly objectivePercent: number
  /** The targets in a sentence. */
  readonly description: string
}

export function promises(catalog: SloCatalog): readonly ClassPromise[] {
  const taken = new Set<string>()
  return catalog.models.flatMap((model) =>
    catalog.classes.flatMap((className) => {
      const slo = catalog.classFor(className, model)
      if (slo?.objectiveRatio === undefined || !hasTargets(slo)) return []
      const { objectiveRatio } = slo
      return [
        {
          model,
          className,
          id: unique(idOf(`${model}-${className}`), taken),
          objectiveRatio,
          objectivePercent: Number(plainNumber(objectiveRatio * 100)),
          description: `${plainNumber(objectiveRatio * 100)} % of the requests of class ${className} offered to ${model} ${targets(slo)}; refused ones count as missed.`,
        },
      ]
    }),
  )
}

function targets({ ttftMs, ttftPer1kTokensMs, tpotMs, e2eMs }: SloClass): string {
  const grows = ttftPer1kTokensMs === 0 ? '' : ` plus ${ttftPer1kTokensMs} ms per 1000 prompt tokens`
  return [
    ttftMs === undefined ? [] : [`get their first token within ${ttftMs} ms${grows}`],
    tpotMs === undefined ? [] : [`get the others at ${tpotMs} ms each on average`],
    e2eMs === undefined ? [] : [`are complete within ${e2eMs} ms`],
  ]
    .flat()
    .join(' and ')
}

/** What DNS labels, Sloth and OpenSLO all accept. */
function idOf(name: string): string {
  return name
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replaceAll(/^-|-$/g, '')
}

function unique(id: string, taken: Set<string>): string {
  let free = id
  for (let count = 2; taken.has(free); count++) free = `${id}-${count}`
  taken.add(free)
  return free
}
