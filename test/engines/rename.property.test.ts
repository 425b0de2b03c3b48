/** The model's name in an answer: renamed wherever it is the member, nowhere else, however the bytes are cut. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type ModelRename, ModelRenamer, modelRename, renamingTap } from '../../src/engines/rename.ts'
import { createTap } from '../../src/engines/tap.ts'
import { captures, cutAt } from './captures.ts'

const SERVED = 'org/größe "q" \\ tiny'
const OTHER = 'other'

function rename(): ModelRename {
  const found = modelRename([SERVED, 'base'], 'asked')
  if (found === undefined) throw new Error('nothing to rename')
  return found
}

function renamed(pieces: readonly Buffer[]): string {
  const renamer = new ModelRenamer(rename())
  const out = [...pieces.flatMap((piece) => [...renamer.feed(piece)]), ...renamer.end()]
  expect(renamer.holds).toBe(false)
  return Buffer.concat(out).toString('utf8')
}

const names = fc.constantFrom(SERVED, 'base', OTHER, 'asked', '', 'org/')
/** Answers whose names stand as members, as values of other members, and within text. */
const answers = fc.letrec((tie) => ({
  node: fc.oneof(
    { depthSize: 'small' },
    names,
    names.map((name) => `{"model":${JSON.stringify(name)}} "model": "base`),
    fc.integer(),
    fc.array(tie('node'), { maxLength: 3 }),
    fc.dictionary(fc.constantFrom('model', 'models', 'submodel', 'x', 'model"'), tie('node'), { maxKeys: 4 }),
  ),
})).node

/** The same answer with its members renamed. */
function expected(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(expected)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [
      key,
      key === 'model' && (inner === SERVED || inner === 'base') ? 'asked' : expected(inner),
    ]),
  )
}

const ascii = (text: string): string =>
  text.replace(/[\u0080-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)

describe('the name of a model', () => {
  it('is renamed as a member and nowhere else, in any cut, spacing and escaping', () => {
    const law = fc.property(
      answers,
      fc.constantFrom(undefined, 1, '\t'),
      fc.boolean(),
      fc.array(fc.nat(), { maxLength: 12 }),
      (answer, indent, escaped, cuts) => {
        const text = JSON.stringify(answer, undefined, indent)
        const bytes = Buffer.from(escaped ? ascii(text) : text)
        const out = renamed(cutAt(bytes, cuts))
        expect(JSON.parse(out)).toEqual(expected(answer))
        // What is not renamed is not even respelled.
        if (!text.includes('model')) expect(out).toBe(bytes.toString())
      },
    )
    fc.assert(law, { numRuns: 400 })
  })

  it('is renamed byte by byte in every captured stream, and nothing else is', () => {
    for (const { name, dialect, bytes } of captures()) {
      const served = /"model":\s?"([^"]*)"/.exec(bytes.toString('utf8'))?.[1]
      if (served === undefined) continue
      const found = modelRename([served], 'asked')
      if (found === undefined) throw new Error(name)
      const tap = renamingTap(createTap({ dialect, stripUsage: false }), found)
      const pass = [...bytes].flatMap((byte) => {
        const out = tap.feed(Buffer.from([byte])).pass
        // A comment may be put only where nothing is held back.
        if (tap.betweenFrames) expect(byte).toBe(0x0a)
        return out
      })
      const out = Buffer.concat([...pass, ...tap.end().pass]).toString('utf8')
      expect(out, name).toBe(bytes.toString('utf8').replaceAll(`"model":"${served}"`, '"model":"asked"'))
    }
  })

  it('needs no renaming where the engine says what was asked for', () => {
    expect(modelRename(['asked', 'asked'], 'asked')).toBeUndefined()
  })
})
