/** Pages of engines gone wrong, as text and as JSON: of load and limits each kind reads what can be, or nothing. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ENGINE_KINDS, engineAdapter } from '../../src/engines/registry.ts'
import { fixture } from '../engines/captures.ts'
import { vllmPage } from '../support/metrics-pages.ts'
import { anyMutations, FUZZ, mutated } from '../support/mutations.ts'

const NAMES = [
  'vllm-0.32.0/metrics-idle.txt',
  'vllm-0.32.0/models.json',
  'sglang-0.5.18/metrics.txt',
  'sglang-0.5.18/loads.json',
  'sglang-0.5.18/models.json',
  'sglang-0.5.18/server-info.json',
  'tgi-3.3.7/metrics-busy.txt',
  'tgi-3.3.7/info.json',
  'llamacpp-11549/metrics-busy.txt',
  'llamacpp-11549/slots.json',
  'llamacpp-11549/props.json',
]
const PIECES = [
  'NaN',
  '+Inf',
  '-Inf',
  '1e999',
  '-5',
  '{',
  '}',
  '[',
  ']',
  '"',
  '\\',
  '\n',
  '#',
  ' ',
  '_bucket',
  ',',
  ':',
  '\0',
  '1.0e',
  'null',
]
/** What may stand where a figure was, in text and in JSON alike. */
const ODD_FIGURES = ['-5', '-0.5', '0', '0.5', '1e308', '1e999', '-1e999', '9007199254740993', 'null', '"7"']
const FIGURE = /(?<![\w.])\d+(\.\d+)?(e[+-]\d+)?(?![\w.])/g

/** Without the buckets of histograms, which are most of a page and which nobody reads. */
const texts = NAMES.map((name) =>
  fixture(name)
    .toString('latin1')
    .replace(/^.*_bucket.*\n/gm, ''),
)
const ranks = vllmPage({ engines: [{ running: 7, waiting: 2, kv: 0.6, steps: 9 }, { running: 1 }] })

/** The page with figures replaced, each by its place among them. */
function withFigures(page: string, swaps: readonly (readonly [at: number, figure: string])[]): string {
  const count = page.match(FIGURE)?.length ?? 1
  const odd = new Map(swaps.map(([at, figure]) => [at % count, figure]))
  let place = -1
  return page.replace(FIGURE, (figure) => {
    place += 1
    return odd.get(place) ?? figure
  })
}

const anySwaps = fc.array(fc.tuple(fc.nat({ max: 1 << 20 }), fc.constantFrom(...ODD_FIGURES)), {
  maxLength: 8,
})
/** Half of them are whole but for their figures, or no JSON would be read. */
const anyPage = fc
  .tuple(fc.constantFrom(...texts, ranks), anySwaps, fc.option(anyMutations(PIECES), { freq: 1, nil: [] }))
  .map(([page, swaps, mutations]) =>
    mutated(Buffer.from(withFigures(page, swaps)), mutations).toString('utf8'),
  )

/** A limit of 0 would shut an engine, and one without end would let in everybody. */
function expectLimits(limits: object): void {
  for (const limit of Object.values(limits)) {
    expect(limit).toBeGreaterThan(0)
    expect(limit).toBeLessThan(Number.POSITIVE_INFINITY)
  }
}

describe('a page of an engine gone wrong', () => {
  it('is no data, or finite figures that are not below zero', () => {
    let taken = 0
    const law = fc.property(anyPage, (page) => {
      for (const kind of ENGINE_KINDS) {
        const sample = engineAdapter(kind).parseLoad(page)
        if (sample === undefined) continue
        taken += 1
        const { gauges, limits, processStartSec = 0, progressTotal = 0 } = sample
        for (const figure of [...Object.values(gauges), processStartSec, progressTotal]) {
          expect(figure).toBeGreaterThanOrEqual(0)
          expect(figure).toBeLessThan(Number.POSITIVE_INFINITY)
        }
        expectLimits(limits)
      }
    })
    fc.assert(law, FUZZ.runs(800))
    expect(taken).toBeGreaterThan(100)
  })

  it('tells limits that are finite and above zero, or none', () => {
    let taken = 0
    const law = fc.property(anyPage, (page) => {
      for (const kind of ENGINE_KINDS) {
        const limits = engineAdapter(kind).parseLimits(page, 'tiny')
        taken += Object.keys(limits).length
        expectLimits(limits)
      }
    })
    fc.assert(law, FUZZ.runs(800))
    expect(taken).toBeGreaterThan(100)
  })
})
