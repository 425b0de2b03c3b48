/** The page walker: labels, escapes, odd values, and pages that mean nothing. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { families, labelOf, walkPage } from '../../src/engines/prom-text.ts'

function walk(page: string, ...names: readonly string[]): [string, string, number][] {
  const seen: [string, string, number][] = []
  walkPage(page, families(names), (name, labels, value) => seen.push([name, labels, value]))
  return seen
}

describe('walkPage', () => {
  it('reads plain, labelled, stamped and exemplified samples, and no others', () => {
    const page = [
      '# HELP family_a something with a 5',
      '# TYPE family_a gauge',
      'family_a 1',
      'family_a{x="1"} 2.5e+03',
      'family_a{x="2"} 3 1795965696000',
      'family_a{x="3"} 4 # {trace_id="9"} 0.5 1.2',
      'family_ab 5',
      'family_a_total 5',
      'family_b{y="family_a 6"} 7',
      'family_a\t8',
    ].join('\n')
    expect(walk(page, 'family_a')).toEqual([
      ['family_a', '', 1],
      ['family_a', 'x="1"', 2500],
      ['family_a', 'x="2"', 3],
      ['family_a', 'x="3"', 4],
      ['family_a', '', 8],
    ])
  })

  it('leaves out values that are no number, below zero or too large to be counted', () => {
    const values = [' NaN', ' +Inf', ' -Inf', '', ' ', ' x', ' -1', ' 1e300', ' 1'].map(
      (value) => `family_a${value}`,
    )
    expect(walk(values.join('\n'), 'family_a')).toEqual([['family_a', '', 1]])
  })

  it('refuses names too short to be told apart', () => {
    expect(() => families(['short'])).toThrow(RangeError)
  })

  it('reads names whose colon was rewritten', () => {
    expect(walk('vllm_num_requests_running{engine="0"} 3', 'vllm:num_requests_running')).toHaveLength(1)
    expect(
      walk(
        'sglang_num_queue_reqs 3\nllamacpp_requests_deferred 1',
        'sglang:num_queue_reqs',
        'llamacpp:requests_deferred',
      ),
    ).toHaveLength(2)
  })

  it('survives any text, and cut pages', () => {
    const anyPage = fc.array(
      fc.oneof(
        fc.string(),
        fc.constantFrom(
          'family_a{',
          'family_a{x="',
          'family_a{x="\\',
          'family_a{x="}"} 1',
          'family_a 1',
          '\r',
        ),
      ),
      { maxLength: 20 },
    )
    fc.assert(fc.property(anyPage, (lines) => void walk(lines.join('\n'), 'family_a')))
  })

  it('finds labels that hold quotes, braces, commas and breaks', () => {
    const anyLabel = fc.string({ unit: fc.constantFrom('"', '\\', '\n', '{', '}', ',', '=', 'a', ' ', 'é') })
    fc.assert(
      fc.property(anyLabel, anyLabel, (first, second) => {
        const escaped = (text: string): string =>
          text.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')
        const [sample] = walk(`family_a{one="${escaped(first)}",two="${escaped(second)}",} 7`, 'family_a')
        expect(sample?.[2]).toBe(7)
        expect(labelOf(sample?.[1] ?? '', 'one')).toBe(first)
        expect(labelOf(sample?.[1] ?? '', 'two')).toBe(second)
        expect(labelOf(sample?.[1] ?? '', 'three')).toBeUndefined()
      }),
    )
  })
})
