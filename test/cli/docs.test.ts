/** The generated pages say what the code says, and a page that does not is named. */
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { run } from './fake-terminal.ts'

const root = new URL('../../', import.meta.url).pathname
let copy: string

beforeEach(async () => {
  copy = await mkdtemp(join(tmpdir(), 'sluice-docs-'))
  for (const folder of ['docs', 'config', 'dashboards'])
    await cp(join(root, folder), join(copy, folder), { recursive: true })
})
afterEach(() => rm(copy, { recursive: true }))

describe('sluice docs', () => {
  it('finds this repository up to date', async () => {
    expect(await run(['docs', '--check', '--root', root])).toMatchObject({ code: 0, err: '' })
  })

  it.each([
    ['docs/configuration.md', '`timeouts.drain`'],
    ['docs/errors.md', '`slo_unreachable`'],
    ['docs/metrics.md', '`sluice_slo_events_total`'],
    ['config/sluice.schema.json', '"ttft"'],
    ['docs/alerting.md', '[SluiceSloBurnFast]'],
    ['dashboards/sluice-rules.yml', '> 14.4'],
    ['dashboards/sluice-rules.test.yml', 'eval_time: 59m'],
    ['dashboards/sluice-slo.json', '"Finish reason"'],
    ['config/kubernetes/prometheus-rule.yaml', 'SluiceAbsent'],
  ])('names %s when it differs, and writes it anew', async (path, fact) => {
    const page = join(copy, path)
    const right = await readFile(page, 'utf8')
    await writeFile(page, right.replace(fact, 'wrong'))
    const checked = await run(['docs', '--check', '--root', copy])
    expect(checked).toMatchObject({
      code: 1,
      err: `${path} is out of date: run \`npm run docs:gen\` and commit it\n`,
    })
    expect((await run(['docs', '--root', copy])).out).toBe(`${path} written\n`)
    expect(await readFile(page, 'utf8')).toBe(right)
  })

  it('says which lines a page lost', async () => {
    await writeFile(join(copy, 'docs/errors.md'), '# Errors\n')
    expect(await run(['docs', '--check', '--root', copy])).toMatchObject({
      code: 1,
      err: expect.stringContaining('<!-- generated: errors -->'),
    })
  })
})
