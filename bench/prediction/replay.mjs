/** Replays rows as a stream: predict, then learn. */

/** Two replicas' rows of two kinds are interleaved. */
const ROWS_PER_FIRST_TOKEN = 4

/**
 * Each row with what was said of it and how many rows had been learnt by then: all before it, or, `asKnownAtDispatch`,
 * those that had come when it was sent. An engine serves its queue in order, so a first token is preceded by as many of
 * the same replica as waited before it; an answer by about as many ends as ran beside it.
 */
export function replay(rows, predictor, asKnownAtDispatch) {
  const due = new Map()
  rows.forEach((row, index) => {
    const before = row.kind === 'ttft' ? row.waiting + 1 : row.running
    const at = asKnownAtDispatch ? Math.max(0, index - ROWS_PER_FIRST_TOKEN * before) : index
    due.set(at, [...(due.get(at) ?? []), index])
  })
  const said = new Array(rows.length)
  rows.forEach((row, index) => {
    for (const each of due.get(index) ?? []) said[each] = predictor.predict(rows[each])
    predictor.learn(row, said[index])
  })
  return rows.map((row, index) => ({
    kind: row.kind,
    observedMs: row.observedMs,
    said: said[index],
    seen: index,
  }))
}
