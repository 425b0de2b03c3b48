/** Reloading: validated first, one at a time, the old configuration kept when the new one is bad. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Config } from '../../src/config/config.ts'
import { createReloader, type ReloaderOptions, type ReloadResult } from '../../src/config/reload.ts'
import { loaded, MINIMAL } from './files.ts'

let folder: string
let path: string

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-reload-'))
  path = join(folder, 'sluice.yaml')
  await writeFile(path, MINIMAL)
})

afterEach(() => rm(folder, { recursive: true }))

function start(options: Partial<ReloaderOptions> = {}) {
  const applied: Config[] = []
  const told: { level: string; facts: object; message: string }[] = []
  const results: ReloadResult[] = []
  const say = (level: string) => (facts: object, message: string) => void told.push({ level, facts, message })
  const reloader = createReloader({
    path,
    current: loaded(MINIMAL),
    env: {},
    apply: (config) => void applied.push(config),
    log: { info: say('info'), warn: say('warn'), error: say('error') },
    onResult: (result) => void results.push(result),
    ...options,
  })
  return { reloader, applied, told, results }
}

describe('a reload', () => {
  it('puts a changed file into service and logs what changed', async () => {
    const { reloader, applied, told, results } = start()
    await writeFile(path, `${MINIMAL}mode: enforce\n`)
    const result = await reloader.reload('signal')
    expect(result).toMatchObject({ ok: true, changes: ['mode: shadow → enforce'], needsRestart: [] })
    expect(applied.map(({ mode }) => mode)).toEqual(['enforce'])
    expect(reloader.current.mode).toBe('enforce')
    expect(told).toMatchObject([
      {
        level: 'info',
        message: 'configuration reloaded',
        facts: { cause: 'signal', changes: ['mode: shadow → enforce'] },
      },
    ])
    expect(results).toEqual([result])
  })

  it('keeps the old one when the file is bad, and says why', async () => {
    const { reloader, applied, told } = start()
    await writeFile(path, `${MINIMAL}mode: enforced\ntimeout: 1s\n`)
    const result = await reloader.reload('watch')
    expect(result.ok).toBe(false)
    expect(applied).toEqual([])
    expect(reloader.current.mode).toBe('shadow')
    expect(told[0]).toMatchObject({ level: 'error' })
    expect(JSON.stringify(told[0]?.facts)).toContain('sluice.yaml:4:7: error: mode')
    expect(JSON.stringify(told[0]?.facts)).toContain('sluice.yaml:5:1: error: timeout')
  })

  it('keeps the old one when the file is gone', async () => {
    const { reloader } = start()
    await rm(path)
    expect(await reloader.reload('request')).toMatchObject({
      ok: false,
      problems: [{ message: 'there is no such file' }],
    })
    await writeFile(path, MINIMAL)
    expect(await reloader.reload('request')).toMatchObject({ ok: true, changes: [] })
  })

  it('keeps the old one when it can not be put into service', async () => {
    const { reloader } = start({
      apply: () => {
        throw new Error('no more sockets')
      },
    })
    await writeFile(path, `${MINIMAL}mode: off\n`)
    const result = await reloader.reload('request')
    expect(result).toMatchObject({ ok: false })
    expect(JSON.stringify(result)).toContain('no more sockets')
    expect(reloader.current.mode).toBe('shadow')
  })

  it('applies nothing when nothing changed', async () => {
    const { reloader, applied, told } = start()
    await writeFile(path, `# a comment\n${MINIMAL}`)
    expect(await reloader.reload('watch')).toMatchObject({ ok: true, changes: [] })
    expect(applied).toEqual([])
    expect(told[0]?.message).toBe('configuration unchanged')
  })

  it('applies a rotated secret without showing it', async () => {
    const withToken = (token: string) => `${MINIMAL}admin: { token: ${token} }\n`
    const { reloader, applied, told } = start({ current: loaded(withToken('old-token-0123456789')) })
    await writeFile(path, withToken('new-token-0123456789'))
    expect(await reloader.reload('watch')).toMatchObject({ ok: true, changes: ['admin.token: changed'] })
    expect(applied).toHaveLength(1)
    expect(JSON.stringify(told)).not.toContain('token-0123456789')
  })

  it('says what takes effect at the next start only', async () => {
    const { reloader, told } = start()
    await writeFile(path, `${MINIMAL}listen: 127.0.0.1:8081\n`)
    expect(await reloader.reload('signal')).toMatchObject({ ok: true, needsRestart: ['listen'] })
    expect(told.at(-1)).toMatchObject({ level: 'warn', facts: { keys: ['listen'] } })
    await writeFile(path, `${MINIMAL}workers: 2\nslo: { state_file: windows.json }\n`)
    expect(await reloader.reload('signal')).toMatchObject({
      needsRestart: ['listen', 'workers', 'slo.state_file'],
    })
  })

  it('runs one at a time; calls that come meanwhile share the next run', async () => {
    let inside = 0
    let release: () => void = () => {}
    let entered: () => void = () => {}
    const firstEntered = new Promise<void>((resolve) => {
      entered = resolve
    })
    const gate = new Promise<void>((resolve) => {
      release = resolve
    })
    const modes: string[] = []
    const { reloader } = start({
      apply: async (config) => {
        expect(++inside).toBe(1)
        modes.push(config.mode)
        entered()
        await gate
        inside--
      },
    })
    await writeFile(path, `${MINIMAL}mode: enforce\n`)
    const first = reloader.reload('signal')
    await firstEntered
    await writeFile(path, `${MINIMAL}mode: off\n`)
    const [second, third] = [reloader.reload('watch'), reloader.reload('request')]
    expect(second).toBe(third)
    release()
    await Promise.all([first, second])
    expect(modes).toEqual(['enforce', 'off'])
    expect(reloader.current.mode).toBe('off')
  })
})
