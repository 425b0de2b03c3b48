/** Remembers how requests ended over the last minutes and hours, step by step, so that a chart shows the past at once. */
import type { Settlement, Verdict } from '../core/records.ts'
import type { Ms } from '../core/units.ts'
import type { SeriesKey, SloCatalog } from '../slo/attainment.ts'
import { RollingSums } from '../slo/rolling-sums.ts'
import { HOUR_MS, MINUTE_MS } from '../slo/windows.ts'

/**
 * Counters of one step. `missed`: served and judged bad. In shadow mode: what enforcing would have done, and how those
 * ended that it would have served (at once or later) or shed.
 */
const TIMELINE_FIELDS = [
  'good',
  'missed',
  'shed',
  'wouldAdmit',
  'wouldWait',
  'wouldShed',
  'wouldServeGood',
  'wouldServeBad',
  'wouldShedGood',
  'wouldShedBad',
] as const
export type TimelineField = (typeof TIMELINE_FIELDS)[number]

export type RangeName = '15m' | '1h' | '6h'

export interface TimelineRange {
  readonly name: RangeName
  readonly stepMs: Ms
  /** Over so much time a trailing rate is taken at each step. */
  readonly trailingMs: Ms
}

/** Steps of a chart, whatever its range. */
export const SHOWN_STEPS = 180
export const TIMELINE_RANGES: readonly TimelineRange[] = [
  { name: '15m', stepMs: 5000, trailingMs: 5 * MINUTE_MS },
  { name: '1h', stepMs: 20_000, trailingMs: 5 * MINUTE_MS },
  { name: '6h', stepMs: 2 * MINUTE_MS, trailingMs: HOUR_MS },
]
/** Kept before the first shown step, so that trailing rates are whole there too. */
const LEAD_STEPS = Math.max(...TIMELINE_RANGES.map(({ stepMs, trailingMs }) => trailingMs / stepMs))
export const KEPT_STEPS = SHOWN_STEPS + LEAD_STEPS

export interface SeriesHistory {
  readonly key: SeriesKey
  /** One count a step for each field, oldest first, `KEPT_STEPS` long. */
  readonly counts: Readonly<Record<TimelineField, Float64Array>>
}

/** Closed steps only: the one that runs is not in it. */
export interface History {
  readonly range: TimelineRange
  /** End of the newest step, on the clock of the records. */
  readonly endAtMs: Ms
  /** Steps that have been watched, at most `KEPT_STEPS`: what is older was before the start. */
  readonly watchedSteps: number
  readonly series: readonly SeriesHistory[]
}

interface Entry {
  readonly key: SeriesKey
  readonly rings: Readonly<Record<RangeName, RollingSums>>
}

export class Timeline {
  readonly #startMs: Ms
  readonly #entries = new Map<string, Entry>()

  constructor(nowMs: Ms) {
    this.#startMs = nowMs
  }

  /** Counts the end of one request under a key whose names come from the configuration. */
  settled(key: SeriesKey, settlement: Settlement, wouldHave: Verdict | undefined, nowMs: Ms): void {
    const { rings } = this.#entry(key)
    for (const field of fieldsOf(settlement, wouldHave)) {
      const index = TIMELINE_FIELDS.indexOf(field)
      for (const ring of Object.values(rings)) ring.add(index, 1, nowMs)
    }
  }

  /** Takes a new catalog over: series of names that are gone go. */
  configure({ models, classes, products }: SloCatalog): void {
    for (const [id, { key }] of this.#entries) {
      const known =
        models.includes(key.model) && classes.includes(key.class) && products.includes(key.product)
      if (!known) this.#entries.delete(id)
    }
  }

  /** End of the newest closed step: a history is the same until that moves. */
  endAtMs(name: RangeName, nowMs: Ms): Ms {
    const { stepMs } = rangeOf(name)
    return Math.floor(nowMs / stepMs) * stepMs
  }

  history(name: RangeName, nowMs: Ms): History {
    const range = rangeOf(name)
    const { stepMs } = range
    const endAtMs = this.endAtMs(name, nowMs)
    const watchedSteps = Math.min(KEPT_STEPS, Math.ceil((endAtMs - this.#startMs) / stepMs))
    const series = [...this.#entries.values()].map(({ key, rings }) => {
      return { key, counts: countsOf(rings[name], nowMs) }
    })
    return { range, endAtMs, watchedSteps: Math.max(0, watchedSteps), series }
  }

  #entry(key: SeriesKey): Entry {
    const id = `${key.model}\n${key.class}\n${key.product}`
    const found = this.#entries.get(id)
    if (found !== undefined) return found
    const ring = (name: RangeName) => {
      const spanMs = rangeOf(name).stepMs * KEPT_STEPS
      return new RollingSums(TIMELINE_FIELDS.length, spanMs, KEPT_STEPS, false, this.#startMs)
    }
    const entry: Entry = { key, rings: { '15m': ring('15m'), '1h': ring('1h'), '6h': ring('6h') } }
    this.#entries.set(id, entry)
    return entry
  }
}

/** Throws a RangeError for a name that there is not. */
function rangeOf(name: RangeName): TimelineRange {
  const range = TIMELINE_RANGES.find((candidate) => candidate.name === name)
  if (range === undefined) throw new RangeError(`no range ${name}`)
  return range
}

const WOULD_HAVE = { admit: 'wouldAdmit', wait: 'wouldWait', shed: 'wouldShed' } as const

function fieldsOf({ verdict, outcome }: Settlement, wouldHave: Verdict | undefined): TimelineField[] {
  const judged = verdict.kind !== 'excluded'
  const good = verdict.kind === 'good'
  const fields: TimelineField[] = []
  if (judged) fields.push(good ? 'good' : outcome === 'shed' ? 'shed' : 'missed')
  if (wouldHave === undefined) return fields
  fields.push(WOULD_HAVE[wouldHave.kind])
  if (!judged) return fields
  if (wouldHave.kind === 'shed') fields.push(good ? 'wouldShedGood' : 'wouldShedBad')
  else fields.push(good ? 'wouldServeGood' : 'wouldServeBad')
  return fields
}

function countsOf(ring: RollingSums, nowMs: Ms): Record<TimelineField, Float64Array> {
  const counts = TIMELINE_FIELDS.map((field) => [field, new Float64Array(KEPT_STEPS)] as const)
  for (const [age, ...values] of ring.rows(nowMs)) {
    if (age === 0) continue
    counts.forEach(([, steps], field) => {
      steps[KEPT_STEPS - age] = values[field] ?? 0
    })
  }
  return Object.fromEntries(counts) as Record<TimelineField, Float64Array>
}
