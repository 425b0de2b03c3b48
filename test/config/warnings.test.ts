/** What is no fault and still no good idea: warnings, and targets that the hardware can not keep. */
import { describe, expect, it } from 'vitest'
import { HASH_B, load, MINIMAL, problemsOf, profiles } from './files.ts'

describe('a warning', () => {
  const warned = (text: string) => {
    const result = load(text, { profiles })
    if (!result.ok) throw new Error(JSON.stringify(result.problems))
    return result.warnings.map(({ path }) => path)
  }
  const tenants = (classes: string) =>
    `${MINIMAL.replace('none', 'keys')}tenants: [{ name: a, key_sha256: ["${HASH_B}"], classes: [${classes}] }]\n`

  it.each([
    [`${MINIMAL}timeouts: { drain: 10s }\n`, 'timeouts.drain'],
    [`${MINIMAL}timeouts: { heartbeat_after: 2m }\n`, 'timeouts.heartbeat_after'],
    [
      `${MINIMAL}limits: { request: 50s }\nclasses: { c: { ttft: 1s, max_wait: 55s } }\n`,
      'classes.c.max_wait',
    ],
    [`${MINIMAL}admin: { token: short }\n`, 'admin.token'],
    [`${MINIMAL}tenants: [{ name: a }]\n`, 'auth'],
    [`${MINIMAL.replace('none', '{ header: x-tenant, trusted: [0.0.0.0/0] }')}`, 'auth.trusted[0]'],
    [`${tenants('chat')}classes: { chat: { ttft: 1s }, spare: { ttft: 1s } }\n`, 'classes.spare'],
    [
      `${tenants('chat')}products: [{ name: p, match: { tenant: a }, class: voice }]\n`,
      'products[0].match.tenant',
    ],
    [
      `${MINIMAL}products: [{ name: p, match: { path: /x }, class: voice }, { name: q, match: { path: /x }, class: chat }]\n`,
      'products[1].match',
    ],
  ])('%j names %s', (text, path) => {
    expect(warned(text)).toContain(path)
  })

  it('is not given for the built-in classes, or without need', () => {
    expect(warned(MINIMAL)).toEqual([])
    expect(warned(tenants('chat'))).toEqual([])
  })
})

describe('the floor of a profile', () => {
  const fleet = (classes: string, second = '') => `auth: none
models:
  - { name: a, profile: known/gpu, replicas: [http://x:1] }
${second}classes: { ${classes} }
`
  const spare = '  - { name: b, replicas: [http://y:1] }\n'

  it('is an error where no model can keep the target', () => {
    const [problem] = problemsOf(load(fleet('c: { ttft: 39ms }'), { profiles }))
    expect(problem).toMatchObject({ severity: 'error', path: 'classes.c.ttft' })
    expect(problem?.message).toContain('40ms')
  })

  it('is a warning where another model can', () => {
    const result = load(fleet('c: { ttft: 39ms }', spare), { profiles })
    expect(result.ok && result.warnings.map(({ path }) => path)).toEqual(['classes.c.ttft'])
  })

  it('is an error in an override for that model', () => {
    const result = load(fleet('c: { ttft: 1s, models: { a: { ttft: 39ms } } }', spare), { profiles })
    expect(problemsOf(result)[0]).toMatchObject({ severity: 'error', path: 'classes.c.models.a.ttft' })
  })

  it('is a warning for the pace of a stream, since engines may speculate', () => {
    const [problem, ...more] = problemsOf(load(fleet('c: { tpot: 8ms }', spare), { profiles }))
    expect(more).toEqual([])
    expect(problem).toMatchObject({ severity: 'warning', path: 'classes.c.tpot', line: 5, column: 23 })
    expect(problem?.message).toContain('8.3ms a token')
    expect(problem?.suggestion).toBe('write for example models: { a: { tpot: 20ms } }')
    const [only] = problemsOf(load(fleet('c: { tpot: 8ms }'), { profiles }))
    expect(only?.suggestion).toBe('write for example tpot: 20ms')
    const [own] = problemsOf(
      load(fleet('c: { tpot: 1s, models: { a: { tpot: 8ms } } }', spare), { profiles }),
    )
    expect(own).toMatchObject({ severity: 'warning', path: 'classes.c.models.a.tpot' })
    expect(own?.suggestion).toBe('write for example tpot: 20ms')
  })

  it('says nothing of targets above it', () => {
    expect(problemsOf(load(fleet('c: { ttft: 40ms, tpot: 9ms }'), { profiles }))).toEqual([])
  })
})
