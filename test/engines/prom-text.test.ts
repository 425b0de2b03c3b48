/** The page walker: labels, escapes, odd values, and pages that mean nothing. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { labelOf, walkPage } from '../../src/engines/prom-text.ts'

function walk(page: string, ...names: readonly string[]): [string, string, number][] {
  const seen: [string, string, number][] = []
  walkPage(page, new Map(names.map((name) => [name, name])), (name, labels, value) =>
    seen.push([name, labels, value]),
  )
  return seen
}

describe('walkPage', () => {
  it('reads plain, labelled, stamped and exemplified samples, and no others', () => {
    const page = [
      '# HELP a something with a 5',
      '# TYPE a gauge',
      'a 1',
      'a{x="1"} 2.5e+03',
      'a{x="2"} 3 1795965696000',
      'a{x="3"} 4 # {trace_id="9"} 0.5 1.2',
      'ab 5',
      'b{y="a 6"} 7',
      'a\t8',
    ].join('\n')
    expect(walk(page, 'a')).toEqual([
      ['a', '', 1],
      ['a', 'x="1"', 2500],
      ['a', 'x="2"', 3],
      ['a', 'x="3"', 4],
      ['a', '', 8],
    ])
  })

  it('leaves out values that are no finite number', () => {
    expect(walk('a NaN\na +Inf\na -Inf\na\na \na x\na 1', 'a')).toEqual([['a', '', 1]])
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
      fc.oneof(fc.string(), fc.constantFrom('a{', 'a{x="', 'a{x="\\', 'a{x="}"} 1', 'a 1', '\r')),
      { maxLength: 20 },
    )
    fc.assert(fc.property(anyPage, (lines) => void walk(lines.join('\n'), 'a')))
  })

  it('finds labels that hold quotes, braces, commas and breaks', () => {
    const anyLabel = fc.string({ unit: fc.constantFrom('"', '\\', '\n', '{', '}', ',', '=', 'a', ' ', 'é') })
    fc.assert(
      fc.property(anyLabel, anyLabel, (first, second) => {
        const escaped = (text: string): string =>
          text.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')
        const [sample] = walk(`a{one="${escaped(first)}",two="${escaped(second)}",} 7`, 'a')
        expect(sample?.[2]).toBe(7)
        expect(labelOf(sample?.[1] ?? '', 'one')).toBe(first)
        expect(labelOf(sample?.[1] ?? '', 'two')).toBe(second)
        expect(labelOf(sample?.[1] ?? '', 'three')).toBeUndefined()
      }),
    )
  })
})
