/** The schema as others see it: JSON Schema for editors, the table of keys, units in every amount. */
import { describe, expect, it } from 'vitest'
import { configJsonSchema, type JsonSchema, keyRows, keysAt } from '../../src/config/json-schema.ts'
import { nearest } from '../../src/config/suggest.ts'

/** Every schema inside of a schema. */
function all(schema: JsonSchema): readonly JsonSchema[] {
  const inner = [
    ...Object.values(schema.properties ?? {}),
    ...(schema.items === undefined ? [] : [schema.items]),
    ...(schema.additionalProperties ? [schema.additionalProperties] : []),
    ...(schema.anyOf ?? []),
  ]
  return [schema, ...inner.flatMap(all)]
}

describe('the JSON Schema', () => {
  it('is draft 7 and closes every mapping that has keys of its own', () => {
    expect(configJsonSchema()).toMatchObject({ $schema: 'http://json-schema.org/draft-07/schema#' })
    const open = all(configJsonSchema()).filter(
      (schema) => schema.properties !== undefined && schema.additionalProperties !== false,
    )
    expect(open).toEqual([])
  })

  it('lets a variable stand wherever a text may', () => {
    const patterns = all(configJsonSchema()).flatMap((schema) =>
      'pattern' in schema ? [String(schema.pattern)] : [],
    )
    expect(patterns.length).toBeGreaterThan(30)
    for (const pattern of patterns) expect(new RegExp(pattern, 'u').test(`\${VAR}`), pattern).toBe(true)
  })

  it('knows the keys of each mapping', () => {
    expect(keysAt(['reroute'])).toEqual(['budget'])
    expect(keysAt(['models', 3, 'replicas', 0])).toEqual(['url', 'dns', 'port', 'key', 'engine'])
    expect(keysAt(['classes', 'any', 'models', 'any'])).toContain('ttft')
    expect(keysAt(['classes'])).toEqual([])
    expect(keysAt(['no', 'such', 'thing'])).toEqual([])
  })
})

describe('the table of keys', () => {
  it('describes every key in a sentence', () => {
    expect(keyRows().length).toBeGreaterThan(70)
    for (const { path, description } of keyRows()) expect(description, path).toMatch(/^[A-Za-z`/].*\.$/)
  })

  it('carries the unit of every amount in its value', () => {
    const amounts = keyRows().filter(({ kind }) => ['duration', 'size', 'rate'].includes(kind))
    expect(amounts.length).toBeGreaterThan(15)
    for (const { path, defaultText } of amounts) {
      if (defaultText !== undefined) expect(defaultText, path).toMatch(/^\d+(\.\d+)?([a-z]+|[KMGT]i?B)$/)
    }
  })
})

describe('the nearest name', () => {
  it.each([
    ['ttfr', ['ttft', 'tpot'], 'ttft'],
    ['maxWait', ['max_wait', 'weight'], 'max_wait'],
    ['caht', ['chat', 'batch'], 'chat'],
    ['x', ['chat'], undefined],
    ['constructor', ['connect'], undefined],
  ])('of %s among %j is %s', (name, known, expected) => {
    expect(nearest(name, known)).toBe(expected)
  })
})
