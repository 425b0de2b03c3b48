/** Sums predictions up: relative errors, how often each quantile held, and whether that is good enough. */
import { quantile } from '../goodput/stats.mjs'

/** What the estimator is held to, on each trace. */
export const TARGETS = { afterSamples: 200, ttftMedian: 0.12, tpotMedian: 0.05, coverageP80: [0.75, 0.85] }

/** Bounds of samples seen. */
const BRACKETS = [0, 50, 100, 200, 500, 1000, 2000, Number.POSITIVE_INFINITY]

export function score(predictions, named) {
  const late = predictions.filter(({ seen }) => seen >= TARGETS.afterSamples)
  const brackets = BRACKETS.slice(0, -1).map((from, i) => {
    const within = predictions.filter(({ seen }) => seen >= from && seen < BRACKETS[i + 1])
    return { fromSamples: from, ...bothKinds(within) }
  })
  return { ...named, rows: predictions.length, ...bothKinds(late), brackets }
}

function bothKinds(predictions) {
  const of = (kind) => figures(predictions.filter((one) => one.kind === kind && one.said.p50 !== undefined))
  return { ttft: of('ttft'), tpot: of('tpot') }
}

function figures(predictions) {
  if (predictions.length === 0) return undefined
  const errors = predictions.map(({ said, observedMs }) => Math.abs(said.p50 - observedMs) / observedMs)
  const held = (level) => {
    if (predictions.some(({ said }) => said[level] === undefined)) return undefined
    return predictions.filter(({ said, observedMs }) => observedMs <= said[level]).length / predictions.length
  }
  return {
    samples: predictions.length,
    medianError: quantile(errors, 0.5),
    p90Error: quantile(errors, 0.9),
    coverage: { p50: held('p50'), p80: held('p80'), p95: held('p95') },
  }
}

/** What of the targets is missed by our own rows. */
export function missedTargets(results) {
  const [low, high] = TARGETS.coverageP80
  return results
    .filter(({ predictor }) => predictor.startsWith('sluice'))
    .flatMap(({ trace, predictor, ttft, tpot }) => {
      const name = `${predictor} on ${trace}`
      const checks = [
        ['median TTFT error', ttft.medianError, ttft.medianError <= TARGETS.ttftMedian],
        ['median TPOT error', tpot.medianError, tpot.medianError <= TARGETS.tpotMedian],
        ['TTFT p80 coverage', ttft.coverage.p80, ttft.coverage.p80 >= low && ttft.coverage.p80 <= high],
        ['TPOT p80 coverage', tpot.coverage.p80, tpot.coverage.p80 >= low && tpot.coverage.p80 <= high],
      ]
      return checks.filter(([, , met]) => !met).map(([what, value]) => `${name}: ${what} ${percent(value)}`)
    })
}

const percent = (ratio) => (ratio === undefined ? '–' : `${(100 * ratio).toFixed(1)} %`)
const covered = ({ coverage }) =>
  coverage.p80 === undefined
    ? '–'
    : [coverage.p50, coverage.p80, coverage.p95].map((ratio) => (100 * ratio).toFixed(0)).join(' / ')

const HEAD = ['TTFT median', 'p90', 'covered 50/80/95', 'TPOT median', 'p90', 'covered 50/80/95']
const cells = ({ ttft, tpot }) =>
  [ttft, tpot].flatMap((it) =>
    it === undefined ? ['–', '–', '–'] : [percent(it.medianError), percent(it.p90Error), covered(it)],
  )

export function accuracyTable(results) {
  return table(
    ['trace', 'predictor', ...HEAD],
    results.map((result) => [result.trace, result.predictor, ...cells(result)]),
  )
}

export function progressTable(results) {
  return table(
    ['trace', 'samples seen', ...HEAD],
    results.flatMap(({ trace, brackets }) =>
      brackets.map((bracket) => [trace, `${bracket.fromSamples}+`, ...cells(bracket)]),
    ),
  )
}

function table(head, rows) {
  const all = [head, ...rows]
  const widths = head.map((_, i) => Math.max(...all.map((row) => row[i].length)))
  const line = (row) =>
    row
      .map((cell, i) => cell.padEnd(widths[i]))
      .join('  ')
      .trimEnd()
  return `${[line(head), line(widths.map((width) => '-'.repeat(width))), ...rows.map(line)].join('\n')}\n`
}
