/** Variables in values: `${VAR}`, `${VAR:-default}` and the escape. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { interpolate } from '../../src/config/interpolate.ts'

fc.configureGlobal({ seed: 20_260_801 })

const env = { HOST: 'gpu-1', EMPTY: '', TRICKY: '$' + '{HOST}' }
/** Written with § for the dollar sign, so that no template string is read into it. */
const fill = (text: string) => interpolate(text.replaceAll('§', '$'), env)

describe('interpolate', () => {
  it.each([
    ['http://§{HOST}:8000', 'http://gpu-1:8000'],
    ['§{HOST}§{HOST}', 'gpu-1gpu-1'],
    ['§{NONE:-8000}', '8000'],
    ['§{NONE:-}', ''],
    ['§{EMPTY:-full}', 'full'],
    ['§{EMPTY}', ''],
    ['§{HOST:-other}', 'gpu-1'],
    ['§§{HOST}', '§{HOST}'],
    ['§HOST and $5', '§HOST and $5'],
    // What a variable holds is not read again.
    ['§{TRICKY}', '§{HOST}'],
  ])('%s becomes %s', (text, expected) => {
    expect(fill(text)).toMatchObject({ text: expected.replaceAll('§', '$'), faults: [] })
  })

  it('names an unset variable without default', () => {
    const { faults } = fill('a §{NONE} b §{ALSO_NONE}')
    expect(faults.map(({ message }) => message)).toEqual([
      'the environment has no variable NONE',
      'the environment has no variable ALSO_NONE',
    ])
    expect(faults[0]?.suggestion).toContain('§{NONE:-…}'.replace('§', '$'))
  })

  it.each(['§{', '§{HOST', '§{1A}', '§{}', '§{A B}', '§{A-b}', '§{toString}'])('refuses %s', (text) => {
    expect(fill(text).faults).toHaveLength(1)
  })

  it('leaves text without an opening as it is', () => {
    const plain = fc.string().filter((text) => !text.includes('${'))
    fc.assert(fc.property(plain, (text) => interpolate(text, env).text === text))
  })

  it('gives back any text whose openings are escaped', () => {
    const law = fc.property(fc.string({ unit: fc.constantFrom('$', '{', '}', 'A', ':', '-') }), (text) => {
      const escaped = text.replaceAll('${', () => '$${')
      return interpolate(escaped, env).text === text && interpolate(escaped, env).faults.length === 0
    })
    fc.assert(law)
  })
})
