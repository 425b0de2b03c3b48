/** The reader of queries that the tests of rules and dashboards lean on. */
import { describe, expect, it } from 'vitest'
import { queryParts } from './promql.ts'

describe('queryParts', () => {
  it('finds series, the labels that they are chosen by, and the labels of clauses', () => {
    expect(
      queryParts(
        'sum by (a, b) (rate(x_total{c="by (no)", d=~"e"}[5m])) / on (a) group_left (f) max(y:z) > bool 2',
      ),
    ).toEqual({
      selectors: [
        { metric: 'x_total', labels: ['c', 'd'] },
        { metric: 'y:z', labels: [] },
      ],
      groupLabels: ['a', 'b', 'a', 'f'],
    })
  })

  it.each(['sum(x', 'x{a="b"', 'x{a="b}', 'sum x)'])('refuses %s', (expr) => {
    expect(() => queryParts(expr)).toThrow(/do not match/)
  })
})
