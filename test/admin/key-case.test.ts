/** Every field that the admin port answers with is named in snake_case, and a client gets back what code has. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { camelCased, snakeCased } from '../../src/admin/key-case.ts'
import { overview } from '../../src/admin/overview/overview.ts'
import { offerOf, settlementOf, sloOf } from '../slo/facts.ts'
import { decisionOf, replicaOf } from '../telemetry/rig.ts'
import { setUp } from './admin-rig.ts'

/** One of each thing that is shown. */
function busy() {
  const waitingByClass = () => [{ class: 'chat', requests: 1, tokens: 90, oldestMs: 20 }]
  const made = setUp({ waitingByClass })
  const { observer, parts } = made
  const gauges = { seenAtMs: 0, runningRequests: 1, waitingRequests: 2, kvUsageRatio: 0.4 }
  parts.replicas = [replicaOf({ gauges })]
  const slo = sloOf({
    name: 'chat',
    ttftMs: 450,
    ttftPer1kTokensMs: 30,
    tpotMs: 55,
    e2eMs: 9000,
    objectiveRatio: 0.9,
  })
  const offer = offerOf(slo, { requestId: 'a', maxOutputTokens: 9, clientDeadlineAtMs: 99 })
  const wouldHave = { kind: 'shed', reason: 'slo_unreachable', retryAfterMs: 5 } as const
  observer.onDecision(decisionOf(offer, { wouldHave }))
  observer.onSettled({
    ...settlementOf({ offer, ttftMs: 300, tpotMs: 30 }),
    replicaId: 'r1',
    predictedTtftMs: 280,
  })
  const classes = [
    { model: 'm', class: 'chat', requests: 1, measuredRatio: 1, shadowRatio: 1, enforcedRatio: 1 },
  ]
  observer.onEstimate({ atMs: 1, spanMs: 2, classes })
  return made
}

function keysOf(value: unknown): readonly string[] {
  if (typeof value !== 'object' || value === null) return []
  const own = Array.isArray(value) ? [] : Object.keys(value)
  return [...own, ...Object.values(value).flatMap(keysOf)]
}

describe('the names of fields', () => {
  it.each(['/overview', '/decisions', '/replicas', '/slo', '/weight', '/health/slo'])(
    'are in snake_case in %s',
    async (path) => {
      const keys = keysOf(await busy().json(path))
      expect(keys.filter((key) => !/^[a-z\d_]+$/.test(key))).toEqual([])
      expect(keys.some((key) => key.includes('_'))).toBe(path !== '/health/slo')
    },
  )

  it('are read back as they were', () => {
    const { ports, observer } = busy()
    for (const told of [overview(ports, true), observer.decisions.last(9)])
      expect(camelCased(snakeCased(told))).toEqual(JSON.parse(JSON.stringify(told)))
  })

  it('are the words that other pages use', () => {
    const names = {
      p99Ms: 1,
      e2eMs: 1,
      ttftPer1kTokensMs: 1,
      per1kTokensMs: 1,
      '5m': 1,
      max: [{ kvPeakRatio: 1 }],
    }
    expect(snakeCased(names)).toEqual({
      p99_ms: 1,
      e2e_ms: 1,
      ttft_per_1k_tokens_ms: 1,
      per_1k_tokens_ms: 1,
      '5m': 1,
      max: [{ kv_peak_ratio: 1 }],
    })
  })

  it('are all that changes', () => {
    const word = fc.stringMatching(/^[a-z]{1,4}\d{0,2}$/)
    const name = fc
      .array(word, { minLength: 1, maxLength: 3 })
      .map((words) =>
        words.map((one, index) => (index === 0 ? one : one[0]?.toUpperCase() + one.slice(1))).join(''),
      )
    const value = fc.letrec((tie) => ({
      any: fc.oneof(
        { depthSize: 'small' },
        fc.string(),
        fc.double({ noNaN: true }),
        fc.boolean(),
        fc.constant(null),
        tie('list'),
        tie('fields'),
      ),
      list: fc.array(tie('any')),
      fields: fc.dictionary(name, tie('any'), { noNullPrototype: true }),
    })).any
    fc.assert(
      fc.property(value, (given) => {
        expect(camelCased(snakeCased(given))).toEqual(given)
      }),
    )
  })
})
