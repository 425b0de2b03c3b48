/** Holds the ratios of bench/relay.mjs to their words: of the medians, with the least and the most of a pass. */
import { describe, expect, it } from 'vitest'

interface Range {
  readonly typical: number
  readonly least: number
  readonly most: number
}
interface Cost {
  readonly work: string
  readonly us: Range
  readonly ratios: readonly (Range & { readonly peer: string })[]
}
const { costsBeside } = (await import(new URL('../../bench/relay/ratios.mjs', import.meta.url).href)) as {
  costsBeside(name: string, rows: readonly object[]): readonly Cost[]
}

const row = (peer: string, pass: number, us: number) => ({
  peer,
  pass,
  usPerChunk: us,
  usPerRequest: us * 10,
  usPerLargeRequest: us * 20,
})

describe('the costs beside those of others', () => {
  const rows = [
    row('nginx', 0, 10),
    row('sluice', 0, 20),
    { peer: 'direct', pass: 0 },
    row('sluice', 1, 30),
    row('nginx', 1, 20),
    row('nginx', 2, 12),
    row('sluice', 2, 27),
  ]
  const [chunk, request, large] = costsBeside('sluice', rows)

  it('compare the medians, and each pass with the same pass', () => {
    expect(chunk?.us).toEqual({ typical: 27, least: 20, most: 30 })
    expect(chunk?.ratios).toEqual([{ peer: 'nginx', typical: 27 / 12, least: 1.5, most: 2.25 }])
  })

  it('are told of each kind of work', () => {
    expect([chunk?.work, request?.work, large?.work]).toEqual([
      'a streamed chunk',
      'a request of 2 KiB',
      'a request of 64 KiB',
    ])
    expect(large?.us.typical).toBe(540)
  })

  it('have no ratio where nobody else was measured', () => {
    expect(costsBeside('sluice', [row('sluice', 0, 20)])[0]?.ratios).toEqual([])
  })
})
