/** Whatever bytes come from engines, clients or files: read the same however cut, refused in words, never thrown over. */
import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { bodyEdits } from '../../src/edge/outbound.ts'
import { readShape } from '../../src/edge/request-shape.ts'
import { ROUTES } from '../../src/edge/routes.ts'
import { ENGINE_KINDS, engineAdapter } from '../../src/engines/registry.ts'
import { spliceBody } from '../../src/engines/splice.ts'
import { createTap } from '../../src/engines/tap.ts'
import { ProxyError } from '../../src/errors.ts'
import { load } from '../config/files.ts'
import { captures, cutAt, fixture, runTap } from '../engines/captures.ts'
import { anyMutations, FUZZ, mutated } from '../support/mutations.ts'

const SSE_PIECES = [
  '\n',
  '\r',
  '\r\n',
  '\n\n',
  'data:',
  'data: ',
  ': x',
  'event: error\n',
  'id: 1\n',
  '\ufeff',
  'data: [DONE]\n\n',
  'data: {"choices":[],"usage":{"prompt_tokens":1}}\n\n',
  '"content":"x"',
  '"error":{}',
  '"usage":{"completion_tokens":-1}',
  '\0',
]
const JSON_PIECES = [
  '{',
  '}',
  '[',
  ']',
  '"',
  '\\',
  ',',
  ':',
  'null',
  '1e999',
  '-',
  '"model"',
  '"\\u0000"',
  '\ufeff',
  ' ',
]
const YAML_PIECES = [
  '\n',
  '  ',
  ': ',
  '- ',
  '&a ',
  '*a',
  '!!binary ',
  '|',
  '>',
  '{',
  '}',
  '~',
  '<<: *a',
  '\t',
  '"',
  '1e9s',
  '-1',
  '0',
]

describe('a stream gone wrong', () => {
  const all = captures().filter(({ bytes }) => bytes.length < 40_000)
  const anyLineEnd = fc.constantFrom('\n', '\r\n', '\r')
  const anyStream = fc
    .tuple(fc.constantFrom(...all), anyLineEnd, anyMutations(SSE_PIECES))
    .map(([{ dialect, bytes }, lineEnd, mutations]) => {
      const text = bytes.toString('latin1').replaceAll('\n', lineEnd)
      return { dialect, bytes: mutated(Buffer.from(text, 'latin1'), mutations) }
    })
  const anyCuts = fc.array(fc.nat({ max: 1 << 20 }), { maxLength: 40 })

  it('passes as it came, and is read the same in one piece and in many', () => {
    const law = fc.property(anyStream, anyCuts, ({ dialect, bytes }, cuts) => {
      const tap = () => createTap({ dialect, stripUsage: false })
      const { out: _, ...plain } = runTap(tap(), [bytes])
      const { out, ...seen } = runTap(tap(), cutAt(bytes, cuts))
      expect(out.equals(bytes)).toBe(true)
      expect(seen).toEqual(plain)
    })
    fc.assert(law, FUZZ.runs(800))
  })

  it('loses the same frames in one piece and in many when usage is taken out', () => {
    const law = fc.property(anyStream, anyCuts, ({ dialect, bytes }, cuts) => {
      const tap = () => createTap({ dialect, stripUsage: true })
      const plain = runTap(tap(), [bytes])
      const seen = runTap(tap(), cutAt(bytes, cuts))
      expect(seen.out.equals(plain.out)).toBe(true)
      expect(bytes.length - seen.out.length).toBeLessThan(1000)
    })
    fc.assert(law, FUZZ.runs(800))
  })
})

describe('an answer gone wrong', () => {
  const answers = [
    'vllm-0.32.0/chat.json',
    'vllm-0.32.0/completion.json',
    'vllm-0.32.0/messages.json',
    'vllm-0.32.0/responses.json',
    'vllm-0.32.0/queue-full-chat.json',
    'tgi-3.3.7/generate.json',
    'tgi-3.3.7/err-generate-failed.json',
  ]
  const texts = answers.map(fixture)
  const anyAnswer = fc
    .tuple(fc.constantFrom(...texts), anyMutations(JSON_PIECES))
    .map(([bytes, mutations]) => mutated(bytes, mutations))
  /** TGI counts in headers. */
  const anyCount = fc.constantFrom(undefined, '5', '', '-1', '1e999', 'many')
  const anyDialect = fc.constantFrom('openai', 'responses', 'anthropic', 'tgi' as const)

  it('is classed by its status, and its usage is a count or nothing', () => {
    const anyStatus = fc.constantFrom(200, 204, 400, 401, 404, 422, 429, 500, 503, 599)
    const law = fc.property(anyAnswer, anyDialect, anyStatus, anyCount, (body, dialect, status, count) => {
      const headers = count === undefined ? {} : { 'x-prompt-tokens': '3', 'x-generated-tokens': count }
      for (const kind of ENGINE_KINDS) {
        const { usage } = engineAdapter(kind).readWhole(dialect, body, headers)
        for (const tokens of Object.values(usage ?? {})) {
          expect(tokens).toBeGreaterThanOrEqual(0)
          expect(tokens).toBeLessThan(Number.POSITIVE_INFINITY)
        }
        const verdict = engineAdapter(kind).classify(status, body)
        expect(verdict.class === 'ok').toBe(status < 400)
      }
    })
    fc.assert(law, FUZZ.runs(400))
  })
})

describe('a request body gone wrong', () => {
  const chat = {
    model: 'tiny',
    stream: true,
    stream_options: { include_usage: false },
    messages: [
      { role: 'system', content: 'be "brief" \\ 😀' },
      {
        role: 'user',
        content: [
          { type: 'text', text: 'Hi' },
          { type: 'image_url', image_url: { url: 'x' } },
        ],
      },
      { role: 'assistant', content: null, tool_calls: [{ function: { name: 'f', arguments: '{}' } }] },
    ],
    tools: [{ type: 'function', function: { name: 'f', parameters: { type: 'object' } } }],
    n: 2,
    priority: 3,
    max_tokens: 10,
  }
  const adapters = ENGINE_KINDS.map(engineAdapter)
  /** Members of every route, so that one refuses only what has gone wrong, and all that are ours at any engine. */
  const all = {
    ...chat,
    inputs: 'x',
    parameters: { best_of: 2 },
    input: ['a', { role: 'user' }],
    tokens: [1],
    ...Object.fromEntries(adapters.flatMap(({ ownedFields }) => ownedFields.map((name) => [name, 7]))),
  }
  const bodies = [
    { ...all, prompt: 'x' },
    { ...all, prompt: [[1, 2], [3]], tools: null },
    { ...all, prompt: [1, 2], stream: null },
  ]
  const anyBody = fc
    .tuple(fc.constantFrom(...bodies), fc.boolean(), anyMutations(JSON_PIECES, 2))
    .map(([body, spaced, mutations]) =>
      mutated(Buffer.from(JSON.stringify(body, null, spaced ? 1 : 0)), mutations),
    )

  it('is malformed in words, or goes on with exactly the members changed that are ours', () => {
    let taken = 0
    const anyFacts = fc.tuple(
      fc.constantFrom(...ROUTES),
      fc.constantFrom(...adapters),
      fc.constantFrom(0, 40),
    )
    const law = fc.property(anyBody, anyFacts, (body, [route, adapter, urgency]) => {
      const shape = shapeOrRefusal(route, body)
      if (shape === undefined) return
      taken += 1
      const facts = { route, shape, engineName: 'org/tiny', scheduling: false, urgency }
      const edits = bodyEdits(facts, adapter)
      const sent = JSON.parse(Buffer.concat(spliceBody(body, edits)).toString('utf8')) as Record<
        string,
        unknown
      >
      const wanted = JSON.parse(body.toString('utf8')) as Record<string, unknown>
      for (const [name, text] of Object.entries(edits)) {
        if (text === undefined) delete wanted[name]
        else wanted[name] = JSON.parse(text)
      }
      expect(sent).toEqual(wanted)
      const ours = ['model', 'stream_options', ...adapter.ownedFields]
      expect(Object.keys(edits).filter((name) => !ours.includes(name))).toEqual([])
      const left = adapter.ownedFields.filter((name) => Object.hasOwn(sent, name))
      expect(left).toEqual(urgency > 0 && adapter.priorityEdit !== undefined ? ['priority'] : [])
      expect(shape.sequences).toBeGreaterThanOrEqual(1)
    })
    fc.assert(law, FUZZ.runs(2000))
    expect(taken).toBeGreaterThan(100)
  })

  it.each(['tools', 'messages', 'stream_options', 'metadata'])(
    'is malformed when `%s` is nested without end',
    (name) => {
      for (const levels of [250, 10_000]) {
        const deep = `${'[{"a":'.repeat(levels)}1${'}]'.repeat(levels)}`
        for (const route of ROUTES) {
          const body = `{"model":"tiny","messages":[],"prompt":"x","input":"x","inputs":"x","tokens":[1],"${name}":${deep}}`
          expect(shapeOrRefusal(route, Buffer.from(body)) === undefined, `${levels} in ${route.path}`).toBe(
            true,
          )
        }
      }
    },
  )

  it('is malformed when it is nothing but names', () => {
    const names = Array.from({ length: 100_000 }, (_, at) => `"n${at}":0`).join(',')
    for (const route of ROUTES) {
      const body = `{"model":"tiny","messages":[],"prompt":"x","input":"x","inputs":"x","tokens":[1],${names}}`
      expect(shapeOrRefusal(route, Buffer.from(body)), route.path).toBeUndefined()
    }
  })

  function shapeOrRefusal(route: (typeof ROUTES)[number], body: Buffer) {
    try {
      return readShape(route, body)
    } catch (error) {
      if (!(error instanceof ProxyError)) throw error
      expect(error.code).toBe('malformed')
      return undefined
    }
  }
})

describe('a configuration gone wrong', () => {
  const files = ['minimal', 'products', 'tenants', 'shadow'].map((name) =>
    readFileSync(new URL(`../../config/${name}.yaml`, import.meta.url)),
  )
  const anyFile = fc
    .tuple(fc.constantFrom(...files), anyMutations(YAML_PIECES))
    .map(([bytes, mutations]) => mutated(bytes, mutations).toString('utf8'))

  it('is taken, or has problems with their places', () => {
    const law = fc.property(anyFile, (text) => {
      const loaded = load(text)
      const lines = text.split('\n').length
      for (const { line, column, message } of loaded.ok ? loaded.warnings : loaded.problems) {
        expect(line).toBeGreaterThanOrEqual(1)
        expect(line).toBeLessThanOrEqual(lines + 1)
        expect(column).toBeGreaterThanOrEqual(1)
        expect(message).not.toBe('')
      }
      expect(loaded.ok || loaded.problems.length > 0).toBe(true)
    })
    fc.assert(law, FUZZ.runs(150))
  })

  it.each([
    '!!binary aGk=',
    '!!set { a }',
    '!!timestamp 2026-01-01',
    '!!omap [a: 1]',
    '!!merge <<',
    '!own x',
  ])('with the tag of %s has a problem wherever it stands', (value) => {
    const [minimal = ''] = files.map(String)
    const places = [
      value,
      `auth: ${value}`,
      `classes: ${value}`,
      `models: [{ name: a, replicas: [${value}] }]`,
    ]
    for (const text of [...places, minimal.replace(/(url|name): [^\n,}]+/, `$1: ${value}`)]) {
      const loaded = load(text)
      expect(loaded.ok ? [] : loaded.problems.map(({ message }) => message)).toContain(
        'this tag means nothing here',
      )
    }
  })

  it('that unfolds without end has a problem', () => {
    const doubling = Array.from(
      { length: 30 },
      (_, level) => `l${level + 1}: &l${level + 1} [*l${level}, *l${level}]`,
    )
    const loaded = load(['l0: &l0 [x, x]', ...doubling].join('\n'))
    expect(loaded.ok).toBe(false)
  })
})
