/** Sums over the samples of a metrics page. */

/** Sums of a counter's samples by one of its labels. */
export function sumsBy(page: string, name: string, label: string): Record<string, number> {
  const sums: Record<string, number> = {}
  for (const [, labels = '', value = '0'] of page.matchAll(new RegExp(`^${name}\\{(.*)\\} (\\S+)$`, 'gm'))) {
    const key = new RegExp(`(?:^|,)${label}="([^"]*)"`).exec(labels)?.[1] ?? ''
    sums[key] = (sums[key] ?? 0) + Number(value)
  }
  return Object.fromEntries(Object.entries(sums).filter(([, sum]) => sum > 0))
}

/** The sum over all samples of a metric, labelled or not. */
export function sumOf(page: string, name: string): number {
  let sum = 0
  for (const [, value = '0'] of page.matchAll(new RegExp(`^${name}(?:\\{.*\\})? (\\S+)$`, 'gm')))
    sum += Number(value)
  return sum
}
