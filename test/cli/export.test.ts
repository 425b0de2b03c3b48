/** `sluice export`: what goes where, and what is said when it can't. */
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { run } from './fake-terminal.ts'

const config = new URL('../../config/products.yaml', import.meta.url).pathname
let folder: string

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-export-'))
})
afterEach(() => rm(folder, { recursive: true }))

describe('sluice export prometheus', () => {
  it('prints the rules that the repository keeps', async () => {
    const kept = await readFile(new URL('../../dashboards/sluice-rules.yml', import.meta.url), 'utf8')
    expect(await run(['export', 'prometheus'])).toEqual({ out: kept, err: '', code: 0 })
  })

  it('writes rules and tests that find them from where they stand', async () => {
    const [rules, tests] = [join(folder, 'rules.yml'), join(folder, 'tests.yml')]
    const ran = await run(['export', 'prometheus', '-c', config, '-o', rules, '--tests', tests])
    expect(ran).toEqual({ out: '', err: `${rules} written\n${tests} written\n`, code: 0 })
    expect(parse(await readFile(tests, 'utf8'))).toMatchObject({ rule_files: ['rules.yml'] })
    expect(parse(await readFile(rules, 'utf8'))).toHaveProperty('groups')
  })

  it('takes the period from the file', async () => {
    const stdin = 'models: [{ name: m, replicas: [http://10.0.0.1] }]\nauth: none\nslo: { window: 28d }\n'
    expect((await run(['export', 'prometheus', '-c', '-'], { stdin })).out).toContain('> 13.44')
  })

  it('warns of a period that is too short to burn', async () => {
    const stdin = 'models: [{ name: m, replicas: [http://10.0.0.1] }]\nauth: none\nslo: { window: 1d }\n'
    const ran = await run(['export', 'prometheus', '-c', '-'], { stdin })
    expect(ran.err).toMatch(/too short for burn-rate alerts/)
    expect(ran.out).not.toContain('SluiceSloBurn')
  })

  it('wraps the rules for the operator, with labels to find them by', async () => {
    const { out } = await run([
      'export',
      'prometheus',
      '--kubernetes',
      '--label',
      'release=kps',
      '--by',
      'product',
    ])
    expect(parse(out)).toMatchObject({
      apiVersion: 'monitoring.coreos.com/v1',
      kind: 'PrometheusRule',
      metadata: { labels: { release: 'kps' } },
      spec: { groups: expect.any(Array) },
    })
    expect(out).toContain('sum by (model, class, product, sli)')
  })

  it.each([
    [['--tests', 'x.yml'], 1, /give --output/],
    [['--by', 'no-label'], 2, /a label name/],
    [['--by', 'class'], 2, /always tells them apart/],
    [['--label', 'nothing'], 2, /name=value/],
  ] as const)('refuses %j', async (flags, code, message) => {
    const ran = await run(['export', 'prometheus', ...flags])
    expect(ran.code).toBe(code)
    expect(ran.err).toMatch(message)
  })
})

describe('sluice export sloth, openslo and pyrra', () => {
  it.each([
    ['sloth', 'version: prometheus/v1'],
    ['openslo', 'apiVersion: openslo/v1'],
    ['pyrra', 'apiVersion: pyrra.dev/v1alpha1'],
  ])('%s writes the promises of the file', async (format, text) => {
    const { out, code } = await run(['export', format, '-c', config])
    expect(code).toBe(0)
    expect(out).toContain(text)
    expect(out).toContain('llama-3-1-70b-voice')
    expect(out).not.toContain('llama-3-1-70b-batch')
  })

  it('pyrra gives each object the labels by which an operator finds it', async () => {
    const { out } = await run(['export', 'pyrra', '-c', config, '--label', 'release=kps'])
    expect(out.match(/^kind: /gm)?.length).toBeGreaterThan(1)
    expect(out.match(/release: kps/g)).toHaveLength(out.match(/^kind: /gm)?.length ?? 0)
  })

  it('tell the problems of a file that is none', async () => {
    const ran = await run(['export', 'sloth', '-c', '-'], { stdin: 'models: []\n' })
    expect(ran).toMatchObject({ code: 1, out: '' })
    expect(ran.err).toContain('<stdin>')
  })
})

describe('sluice export grafana', () => {
  it('prints the dashboards that the repository keeps', async () => {
    for (const name of ['slo', 'engines']) {
      const kept = await readFile(new URL(`../../dashboards/sluice-${name}.json`, import.meta.url), 'utf8')
      expect((await run(['export', 'grafana', name])).out).toBe(kept)
    }
  })

  it('names those that there are when asked for another', async () => {
    expect(await run(['export', 'grafana', 'x'])).toMatchObject({
      code: 2,
      err: expect.stringContaining('slo, engines'),
    })
  })
})
