/** Two judges over the same requests: what an independent client measured, beside what Sluice logged. */

/** Goodput may differ by that much, in percent. */
export const MAX_DIFFERENCE_PERCENT = 1
/** A request that the two call differently must have been that near to a target, by both clocks. */
export const MAX_DISTANCE_MS = 5

/**
 * Pairs a client's records with Sluice's request lines by request id and compares their verdicts.
 *
 * A record is `{ id, completed, good, ttftMs, tpotMs }`, by the client's own rules; a line is the fields of the log.
 * `targets` has `ttftMs` and `tpotMs`. Sluice's own count is over every line that it judged: what the client sends
 * beside its requests (vLLM's bench asks for tokens to be counted) must not be in it.
 */
export function compare(records, lines, targets) {
  const byId = new Map(lines.map((line) => [line.request_id, line]))
  const pairs = records.flatMap((record) => {
    const line = byId.get(record.id)
    return line === undefined ? [] : [{ record, line }]
  })
  const goodByClient = pairs.filter(({ record }) => record.good).length
  const goodBySluice = lines.filter((line) => line.slo === 'good').length
  const paired = new Set(pairs.map(({ line }) => line))
  const alone = lines.filter((line) => line.slo !== 'excluded' && !paired.has(line))
  return {
    requests: records.length,
    unmatched: records.length - pairs.length + alone.length,
    refused: pairs.filter(({ line }) => line.outcome === 'shed').length,
    goodByClient,
    goodBySluice,
    differencePercent: differencePercent(goodByClient, goodBySluice),
    disagreements: pairs.flatMap((pair) => disagreement(pair, targets)),
    ttftLaterMs: laterMs(pairs, 'ttftMs', 'ttft_ms'),
    tpotLaterMs: laterMs(pairs, 'tpotMs', 'tpot_ms'),
  }
}

/** How much more the client counts than Sluice, in percent of what Sluice counts. */
function differencePercent(goodByClient, goodBySluice) {
  if (goodByClient === goodBySluice) return 0
  return goodBySluice === 0 ? Number.POSITIVE_INFINITY : (100 * (goodByClient - goodBySluice)) / goodBySluice
}

/** Nothing, or the one disagreement of a pair with the farther of its two distances from the target in question. */
function disagreement({ record, line }, targets) {
  if (record.good === (line.slo === 'good')) return []
  const distances = [
    distanceMs(record.ttftMs, line.ttft_ms, targets.ttftMs),
    distanceMs(record.tpotMs, line.tpot_ms, targets.tpotMs),
  ].filter((distance) => distance !== undefined)
  const sameEnd = record.completed === (line.outcome === 'completed')
  return [
    {
      id: record.id,
      client: { completed: record.completed, ttftMs: record.ttftMs, tpotMs: record.tpotMs },
      sluice: { outcome: line.outcome, cause: line.slo_cause, ttftMs: line.ttft_ms, tpotMs: line.tpot_ms },
      // No target explains that one side saw a whole answer and the other did not.
      distanceMs: sameEnd && distances.length > 0 ? Math.max(...distances) : Number.POSITIVE_INFINITY,
    },
  ]
}

/** How far from the target the two figures lie when they stand on different sides of it. */
function distanceMs(client, sluice, target) {
  if (client === undefined || sluice === undefined || client <= target === sluice <= target) return undefined
  return Math.max(Math.abs(client - target), Math.abs(sluice - target))
}

/** By how much the client saw it later than Sluice did: median and 99th percentile over what both measured. */
function laterMs(pairs, ofRecord, ofLine) {
  const sorted = pairs
    .filter(({ record, line }) => record[ofRecord] !== undefined && line[ofLine] !== undefined)
    .map(({ record, line }) => record[ofRecord] - line[ofLine])
    .sort((a, b) => a - b)
  const at = (ratio) => sorted[Math.min(sorted.length - 1, Math.floor(ratio * sorted.length))]
  return { p50: at(0.5), p99: at(0.99) }
}

/** What is wrong with a comparison, in sentences; empty when both judges agree. */
export function faultsOf({ requests, unmatched, differencePercent: percent, disagreements, goodBySluice }) {
  const faults = []
  if (requests === 0 || goodBySluice === 0)
    faults.push('nothing was served well: there is nothing to compare')
  if (unmatched > 0) faults.push(`${unmatched} requests are known to one side only`)
  if (Math.abs(percent) > MAX_DIFFERENCE_PERCENT)
    faults.push(`goodput differs by ${percent.toFixed(2)} % (at most ${MAX_DIFFERENCE_PERCENT} %)`)
  for (const each of disagreements) {
    if (each.distanceMs <= MAX_DISTANCE_MS) continue
    faults.push(
      `${each.id} is ${each.distanceMs.toFixed(1)} ms from a target: ${JSON.stringify(each.client)} and ${JSON.stringify(each.sluice)}`,
    )
  }
  return faults
}
