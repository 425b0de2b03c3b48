/** Writes counters, gauges and histograms the way the Python Prometheus client does. */

export type Labels = Readonly<Record<string, string>>

interface Family {
  readonly kind: 'counter' | 'gauge' | 'histogram'
  readonly help: string
  readonly bounds: readonly number[]
  readonly createdSec: number
  readonly series: Map<string, Series>
}

interface Series {
  readonly labels: Labels
  value: number
  readonly buckets: number[]
  count: number
}

/** A metrics page whose numbers are kept between scrapes. */
export class PromPage {
  readonly #families = new Map<string, Family>()
  readonly #createdSec: number

  /** `createdSec` is what the `_created` series say, in Unix seconds. */
  constructor(createdSec: number) {
    this.#createdSec = createdSec
  }

  declare(name: string, kind: Family['kind'], help: string, bounds: readonly number[] = []): void {
    this.#families.set(name, { kind, help, bounds, createdSec: this.#createdSec, series: new Map() })
  }

  /** Sets a gauge, or a counter whose total is kept elsewhere. */
  set(name: string, labels: Labels, value: number): void {
    this.#series(name, labels).value = value
  }

  add(name: string, labels: Labels, value: number): void {
    this.#series(name, labels).value += value
  }

  observe(name: string, labels: Labels, value: number, times = 1): void {
    const { bounds } = this.#family(name)
    const series = this.#series(name, labels)
    series.count += times
    series.value += value * times
    for (let at = bounds.length - 1; at >= 0 && value <= (bounds[at] ?? 0); at--) {
      series.buckets[at] = (series.buckets[at] ?? 0) + times
    }
  }

  /** The page as text. */
  render(): string {
    const lines: string[] = []
    for (const [name, family] of this.#families) renderFamily(lines, name, family)
    return `${lines.join('\n')}\n`
  }

  #family(name: string): Family {
    const family = this.#families.get(name)
    if (family === undefined) throw new RangeError(`metric ${name} is not declared`)
    return family
  }

  #series(name: string, labels: Labels): Series {
    const family = this.#family(name)
    const key = labelText(labels)
    let series = family.series.get(key)
    if (series === undefined) {
      series = { labels, value: 0, buckets: family.bounds.map(() => 0), count: 0 }
      family.series.set(key, series)
    }
    return series
  }
}

function renderFamily(lines: string[], name: string, family: Family): void {
  const { kind, help, bounds, series } = family
  lines.push(`# HELP ${name} ${help}`, `# TYPE ${name} ${kind}`)
  for (const { labels, value, buckets, count } of series.values()) {
    if (kind !== 'histogram') {
      lines.push(`${name}${labelText(labels)} ${floatText(value)}`)
      continue
    }
    bounds.forEach((bound, at) => {
      lines.push(
        `${name}_bucket${labelText({ ...labels, le: floatText(bound) })} ${floatText(buckets[at] ?? 0)}`,
      )
    })
    lines.push(`${name}_bucket${labelText({ ...labels, le: '+Inf' })} ${floatText(count)}`)
    lines.push(
      `${name}_count${labelText(labels)} ${floatText(count)}`,
      `${name}_sum${labelText(labels)} ${floatText(value)}`,
    )
  }
  if (kind === 'gauge') return
  const created = `${kind === 'counter' ? name.replace(/_total$/, '') : name}_created`
  lines.push(`# HELP ${created} ${help}`, `# TYPE ${created} gauge`)
  for (const { labels } of series.values())
    lines.push(`${created}${labelText(labels)} ${floatText(family.createdSec)}`)
}

/** Labels in alphabetical order, as Python prints them. */
function labelText(labels: Labels): string {
  const names = Object.keys(labels).sort()
  if (names.length === 0) return ''
  return `{${names.map((name) => `${name}="${escapeValue(labels[name] ?? '')}"`).join(',')}}`
}

function escapeValue(value: string): string {
  return value.replace(/\\/g, '\\\\').replace(/\n/g, '\\n').replace(/"/g, '\\"')
}

/** A number as Python prints a float: `41.0`, and `9.184221e+06` from a million on. */
export function floatText(value: number): string {
  if (value === Number.POSITIVE_INFINITY) return '+Inf'
  if (Number.isNaN(value)) return 'NaN'
  const plain = Number.isInteger(value) ? `${value}.0` : `${value}`
  const dot = plain.indexOf('.')
  if (value <= 0 || dot <= 6 || plain.includes('e')) return plain
  const digits = `${plain[0]}.${plain.slice(1, dot)}${plain.slice(dot + 1)}`
    .replace(/0+$/, '')
    .replace(/\.$/, '')
  return `${digits}e+${String(dot - 1).padStart(2, '0')}`
}
