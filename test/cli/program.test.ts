/** The command line: help, exit codes, and the commands around the configuration. */
import { createHash } from 'node:crypto'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { COMMANDS } from '../../src/cli/program.ts'
import { systemTerminal } from '../../src/cli/terminal.ts'
import { MINIMAL } from '../config/files.ts'
import { run } from './fake-terminal.ts'

let folder: string
const at = (name: string) => join(folder, name)

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-cli-'))
})
afterAll(() => rm(folder, { recursive: true }))

describe('sluice', () => {
  it('prints help when it is told nothing', async () => {
    const { out, code } = await run([])
    expect(code).toBe(0)
    expect(out).toContain('sluice init -o sluice.yaml')
    for (const { name, hidden } of COMMANDS) expect(out.includes(`\n  ${name} `)).toBe(!hidden)
  })

  it('prints its version', async () => {
    const manifest = JSON.parse(await readFile(new URL('../../package.json', import.meta.url), 'utf8'))
    expect(await run(['--version'])).toEqual({ out: `${manifest.version}\n`, err: '', code: 0 })
  })

  it.each([
    [['frobnicate']],
    [['valdate', 'x']],
    [['validate']],
    [['validate', '--format', 'xml', 'x']],
    [['--nope']],
    [['serve', '-c', 'x.yaml', '--log-level', 'loud']],
    [['load', 'http://127.0.0.1:8080']],
  ])('ends with 2 for %j and says how to get help', async (args) => {
    const { err, code } = await run(args)
    expect(code).toBe(2)
    expect(err).toContain('--help')
  })

  it('shows default times as people write them', async () => {
    expect((await run(['load', '--help'])).out).toContain('(default: 1m)')
    expect((await run(['top', '--help'])).out).toContain('(default: 2s)')
  })

  it.each([
    [['init', '-o', '/no/such/folder/x.yaml'], 'there is no folder /no/such/folder'],
    [['healthcheck', '--url', 'nonsense'], 'write for example http://127.0.0.1:9090'],
  ])('ends with 1 for %j and says what to do', async (args, advice) => {
    const { err, code } = await run(args)
    expect(code).toBe(1)
    expect(err).toContain(advice)
  })

  it('knows what a mistyped command meant', async () => {
    expect((await run(['valdate', 'x'])).err).toContain('Did you mean validate?')
  })

  it.each(COMMANDS)(
    'describes $name the same way everywhere, with examples',
    async ({ name, summary, hidden, load }) => {
      const command = await load(systemTerminal)
      expect(command.name()).toBe(name)
      expect(command.description()).toBe(summary)
      const { out, code } = await run([name, '--help'])
      expect(code).toBe(0)
      if (!hidden) expect(out).toMatch(/Examples?:\n {2}\S/)
    },
    // Some load a whole server, which a busy machine compiles slowly.
    60_000,
  )
})

describe('sluice validate', () => {
  it('shows what was understood', async () => {
    await writeFile(at('good.yaml'), MINIMAL)
    const { out, code } = await run(['validate', at('good.yaml')])
    expect(code).toBe(0)
    expect(out).toContain('good.yaml is valid\n')
    expect(out).toContain('http://10.0.0.11:8000')
    expect(out).toMatch(/chat +500ms +50ms +- +99% +shed +500ms +1\n/)
  })

  it('points at what is wrong and says what to write', async () => {
    const { out, code } = await run(['validate', '-'], {
      stdin: `${MINIMAL}classes: { chat: { ttft: 500 } }\n`,
    })
    expect(code).toBe(1)
    expect(out).toBe(`<stdin>:4:26: error: classes.chat.ttft: 500 has no unit, and a duration needs one
    4 | classes: { chat: { ttft: 500 } }
      |                          ^ write 500ms

<stdin> is not valid: 1 error
`)
  })

  it('never repeats a line that may hold a secret', async () => {
    const text = `${MINIMAL}admin: { listen: 0.0.0.0:9090, tokn: x, token: hunter2-hunter2 }\nauth: { key: hunter3 }\n`
    const { out, code } = await run(['validate', '-'], { stdin: text })
    expect(code).toBe(1)
    expect(out).toContain('tokn')
    expect(out).not.toContain('hunter')
  })

  it('checks several files and ends with 1 when one is bad', async () => {
    await writeFile(at('one.yaml'), MINIMAL)
    await writeFile(at('two.yaml'), 'mode: on\n')
    const { out, code } = await run([
      'validate',
      '--format',
      'json',
      at('one.yaml'),
      at('two.yaml'),
      at('three.yaml'),
    ])
    expect(code).toBe(1)
    const { files } = JSON.parse(out)
    expect(files.map(({ valid }: { valid: boolean }) => valid)).toEqual([true, false, false])
    expect(files[0]).toMatchObject({
      digest: expect.stringMatching(/^[0-9a-f]{12}$/),
      mode: 'shadow',
      problems: [],
    })
    expect(files[1].problems.map(({ path }: { path: string }) => path)).toContain('mode')
    expect(files[2].problems[0]).toMatchObject({ message: 'there is no such file' })
  })

  it('is silent about a good file when it is told to be quiet', async () => {
    expect(await run(['validate', '-q', '-'], { stdin: MINIMAL })).toEqual({ out: '', err: '', code: 0 })
  })

  it('lets warnings pass unless it is strict', async () => {
    const stdin = `${MINIMAL}timeouts: { drain: 5s }\n`
    expect((await run(['validate', '-q', '-'], { stdin })).code).toBe(0)
    const strict = await run(['validate', '-q', '--strict', '-'], { stdin })
    expect(strict.code).toBe(1)
    expect(strict.out).toContain('<stdin> is not valid: 1 warning')
  })

  it('takes variables from the environment, and knows profiles', async () => {
    const stdin = MINIMAL.replace('name: llama,', `name: llama, profile: "\${P}",`)
    expect((await run(['validate', '-'], { stdin, env: { P: 'Llama-3.1-8B/H100-80G-SXM/tp1' } })).code).toBe(
      0,
    )
    expect((await run(['validate', '-'], { stdin, env: { P: 'no/such/profile' } })).out).toContain(
      'there is no profile',
    )
  })
})

describe('sluice init', () => {
  it('writes a file that is valid, and never over another', async () => {
    const file = at('new.yaml')
    expect((await run(['init', '-o', file])).code).toBe(0)
    expect((await run(['validate', '--strict', file])).code).toBe(0)
    await writeFile(file, 'mine')
    const again = await run(['init', '-o', file])
    expect(again).toMatchObject({ code: 1, err: expect.stringContaining('left alone') })
    expect(await readFile(file, 'utf8')).toBe('mine')
  })

  it('shows it on stdout', async () => {
    expect((await run(['init', '-o', '-'])).out).toContain('mode: shadow')
  })
})

describe('sluice key', () => {
  const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')

  it('makes a key, shown beside the lines for the file', async () => {
    const [one, two] = [await run(['key', '--tenant', 'acme']), await run(['key', '--tenant', 'acme'])]
    const key = /sk-sluice-[\w-]{43}/.exec(one.err)?.[0] ?? ''
    expect(one.out).toBe(`  - name: acme\n    key_sha256: ["${sha256(key)}"]\n`)
    expect(two.out).not.toBe(one.out)
  })

  it('prints lines that make a file with that tenant valid', async () => {
    const { out } = await run(['key', '--tenant', 'acme'])
    const stdin = `${MINIMAL.replace('none', 'keys')}tenants:\n${out}`
    expect((await run(['validate', '--strict', '-'], { stdin })).code).toBe(0)
  })

  it('hashes a key that exists already without repeating it', async () => {
    const { out, err } = await run(['key', '--stdin'], { stdin: 'my-old-key\n' })
    expect(out).toBe(`key_sha256: ["${sha256('my-old-key')}"]\n`)
    expect(err).toBe('')
    expect((await run(['key', '--stdin'], { stdin: '\n' })).code).toBe(1)
  })

  it('gives JSON to scripts', async () => {
    const made = JSON.parse((await run(['key', '--format', 'json'])).out)
    expect(made.key_sha256).toBe(sha256(made.key))
  })

  it('refuses a name that the file would refuse', async () => {
    expect((await run(['key', '--tenant', 'a/b'])).code).toBe(2)
  })
})
