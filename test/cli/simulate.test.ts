/** `sluice simulate` and `sluice engine`: what they print and what they refuse. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterAll, describe, expect, it } from 'vitest'
import type { GoodputSearch, Simulation } from '../../src/cli/simulate-runs.ts'
import { startEngine } from '../../src/emulator/start.ts'
import { profileIds } from '../../src/sim/profiles.ts'
import { run } from './fake-terminal.ts'

const SLOW = [
  'simulate',
  '--profile',
  'demo/slow',
  '--replicas',
  '2',
  '--length-ratio',
  '0.25',
  '--duration',
  '18s',
]

// Simulating takes a second of CPU here; a busy machine may take many to give it.
describe('sluice simulate', { timeout: 60_000 }, () => {
  it('runs schedulers side by side, on the same requests', async () => {
    const { out, err, code } = await run([...SLOW, '--rate', '5,15', '--format', 'json'])
    expect(code).toBe(0)
    expect(err).toContain('simulating sluice at 5.0 requests/s')
    const { runs, capacity } = JSON.parse(out) as Simulation
    expect(capacity).toBeUndefined()
    expect(runs.map(({ scheduler, ratePerSec }) => `${scheduler} ${ratePerSec}`)).toEqual([
      'sluice 5',
      'round-robin 5',
      'sluice 15',
      'round-robin 15',
    ])
    const good = (at: number) => runs[at]?.report.goodPerSec ?? 0
    expect(good(2)).toBeGreaterThan(good(3))
    expect(runs[0]?.report.total.offered).toBe(runs[1]?.report.total.offered)
  })

  it('repeats to the byte', async () => {
    const args = [...SLOW, '--rate', '8', '--duration', '8s', '--format', 'json']
    expect((await run(args)).out).toBe((await run(args)).out)
  })

  it('measures capacity for --load and says it', async () => {
    const { out } = await run([...SLOW, '--load', '0.5', '--scheduler', 'round-robin'])
    expect(out).toMatch(/capacity [\d.]+ requests\/s \(bare fleet, 90 % good\), saturated at [\d.]+/)
    expect(out).toContain('│ 0.5x │ round-robin │')
    expect(out).toContain('│ autocomplete │')
  })

  it('bends to engine flags, bursts, mixes and priors', async () => {
    const good = async (...more: string[]) => {
      const { out } = await run([
        ...SLOW,
        '--rate',
        '9',
        '--scheduler',
        'sluice',
        '--format',
        'json',
        ...more,
      ])
      return (JSON.parse(out) as Simulation).runs[0]?.report
    }
    const plain = await good()
    expect(await good('--max-num-seqs', '4')).not.toEqual(plain)
    expect(await good('--arrivals', 'gamma:4')).not.toEqual(plain)
    expect(await good('--prior')).not.toEqual(plain)
    expect((await good('--mix', 'voice'))?.classes.map(({ className }) => className)).toEqual(['voice'])
  })

  it('searches the goodput of each scheduler', async () => {
    const { out, err } = await run([...SLOW, '--find-goodput', '--good', '80%', '--format', 'json'])
    const { found, goodRatio } = JSON.parse(out) as GoodputSearch
    expect(goodRatio).toBe(0.8)
    expect(found.map(({ scheduler }) => scheduler)).toEqual(['sluice', 'round-robin'])
    const [ours, bare] = found.map(({ capacity }) => capacity.ratePerSec)
    expect(ours).toBeGreaterThan(bare ?? Number.NaN)
    expect(err).toMatch(/[\d.]+\/s: [\d.]+ % good/)
  })

  it('takes workloads, clients, engines and faults as it is told', async () => {
    const { out } = await run([
      ...SLOW,
      ...['--rate', '40', '--workload', 'sessions', '--arrivals', 'bursts:2s:4s:2', '--clients', 'sdk'],
      ...['--give-up', '5s', '--priority', '--speculative', '2:0.6', '--disaggregated', '1:1'],
      ...['--no-chunked-prefill', '--no-prefix-caching', '--kv-tokens', '16000'],
      ...['--fault', 'slow=0.5@5s-10s/1', '--fault', 'frozen-metrics@8s', '--fault', 'tokenizer=1.2'],
    ])
    expect(out).toContain('2 x demo/slow, sessions, seed 1')
    expect(out).toMatch(/\d+ retries, in the end good [\d.]+ %/)
    expect(out).toContain('│ agent │')
  })

  it('says which profile it takes where the configuration names none', async () => {
    const stdin = 'auth: none\nmodels: [{ name: m, replicas: [http://127.0.0.1:8001] }]\n'
    const { err } = await run(['simulate', '--config', '-', '--rate', '1', '--duration', '2s'], { stdin })
    expect(err).toContain('the file names no profile for m: Llama-3.1-8B/H100-80G-SXM/tp1 is taken')
  })

  it('tells of a fault that can not be before anything runs', async () => {
    const { err, code } = await run([...SLOW, '--rate', '1', '--fault', 'dead/9'])
    expect(code).toBe(1)
    expect(err).toBe('sluice: the fault "dead" is for replica 9, of which there are 2, counted from 0\n')
  })

  it('lists every fault in its help', async () => {
    const { out } = await run(['simulate', '--help'])
    const faults = [
      'slow=',
      'dead',
      'frozen-metrics',
      'lost-metrics',
      'late-metrics=',
      'tokenizer=',
      'estimator=',
    ]
    for (const fault of faults) expect(out).toContain(`\n  ${fault}`)
  })

  it('takes promises, profile, replicas and engine arguments from a configuration', async () => {
    const stdin = [
      'classes: { chat: { ttft: 1ms } }',
      'auth: none',
      'models:',
      '  - name: m',
      '    profile: demo/slow',
      '    engine_args: { max_num_seqs: 3 }',
      '    replicas: [http://127.0.0.1:8001, http://127.0.0.1:8002, http://127.0.0.1:8003]',
    ].join('\n')
    const args = ['simulate', '--config', '-', '--mix', 'chat', '--rate', '3', '--duration', '9s']
    const { out, err } = await run([...args, '--length-ratio', '0.2', '--scheduler', 'round-robin'], {
      stdin,
    })
    expect(err).toContain('simulating round-robin at 3.0 requests/s')
    expect(out).toContain('3 x demo/slow, mix, seed 1')
    expect(out).toContain('bad: ttft')
    const other = await run(['simulate', '--config', '-', '--model', 'nope', '--rate', '1'], { stdin })
    expect(other.err).toContain('--model "nope" is none of m')
  })

  it.each([
    [['--scheduler', 'nope'], 'is none of sluice, round-robin'],
    [['--fault', 'tokenizer=1.2/1'], 'of the whole fleet: leave /REPLICA out'],
    [['--fault', 'estimator=2@5s', '--prior'], 'holds from the start: leave @FROM out'],
    [['--fault', 'estimator=2', '--rate', '1'], 'give --prior too'],
    [['--rate', '1', '--load', '1'], 'either --rate or --load'],
    [['--profile', 'demo/slwo', '--rate', '1'], 'unknown profile "demo/slwo"; the nearest are: demo/slow'],
    [['--replicas', '0'], 'at least 1'],
    [['--workload', 'nope'], 'is none of mixed, short-chat'],
    [['--arrivals', 'gamma'], 'It must be poisson, gamma:CV'],
    [['--arrivals', 'bursts:5s:5s:3'], 'less than nothing between them'],
    [['--speculative', '4'], 'It must be TOKENS:ACCEPTANCE'],
    [['--speculative', '4:1.5', '--rate', '1'], 'an acceptance of 0 to 1'],
    [['--disaggregated', '1:0'], 'It must be PREFILL:DECODE'],
    [['--fault', 'sleepy'], 'It must be slow=RATIO'],
    [['--fault', 'slow=0.5@soon'], 'duration'],
    [['--fault', 'dead/7', '--rate', '1'], 'is for replica 7, of which there are 4'],
    [['--trace', '/no/such/file', '--rate', '1'], 'no such file'],
    [['--trace', 'x', '--trace-class', 'nope'], '"nope" is none of chat'],
  ])('refuses %j', async (args, message) => {
    const { err, code } = await run(['simulate', ...args])
    expect(code).toBeGreaterThan(0)
    expect(err).toContain(message)
  })
})

describe('sluice simulate --trace', { timeout: 60_000 }, () => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-trace-'))
  afterAll(() => rmSync(folder, { recursive: true }))

  function traceFile(name: string, bytes: string | Uint8Array): string {
    const path = join(folder, name)
    writeFileSync(path, bytes)
    return path
  }

  const LINES = Array.from({ length: 600 }, (_, at) => `${at / 50},${40 + (at % 60)},8`)
  const CSV = ['arrival_s,prompt_tokens,output_tokens', ...LINES, ''].join('\n')
  const ARGS = ['simulate', '--profile', 'demo/slow', '--replicas', '2', '--scheduler', 'round-robin']

  it('replays at the recorded rate, or at another, packed or not', async () => {
    const plain = await run([...ARGS, '--trace', traceFile('t.csv', CSV), '--format', 'json'])
    const { runs, workload } = JSON.parse(plain.out) as Simulation
    expect(workload).toContain('t.csv (csv form, 600 requests)')
    expect(runs[0]?.ratePerSec).toBeCloseTo(50, 6)
    expect(runs[0]?.requests).toBe(600)
    expect(runs[0]?.durationMs).toBeCloseTo(12_000, 6)
    const packed = traceFile('t.csv.gz', gzipSync(CSV))
    const again = await run([...ARGS, '--trace', packed, '--rate', '50', '--format', 'json'])
    expect((JSON.parse(again.out) as Simulation).runs).toEqual(runs)
    const loaded = await run([...ARGS, '--trace', packed, '--load', '0.5'])
    expect(loaded.out).toContain('│ 0.5x │')
  })

  it('says where a file is wrong', async () => {
    const wrong = await run([...ARGS, '--trace', traceFile('bad.csv', `${CSV}1,2,3\n`)])
    expect([wrong.code, wrong.err]).toEqual([1, expect.stringContaining('bad.csv:602: it is earlier')])
    const torn = await run([...ARGS, '--trace', traceFile('torn.gz', gzipSync(CSV).subarray(0, 400))])
    expect(torn.err).toContain('torn.gz: unexpected end of file')
  })
})

describe('sluice engine', () => {
  it('lists the profiles', async () => {
    expect((await run(['engine', '--list-profiles'])).out.trim().split('\n')).toEqual(profileIds())
  })

  it('says what is wrong with its flags, its key and its port', async () => {
    expect((await run(['engine', '--profile', 'H100'])).err).toMatch(
      /unknown profile "H100"; the nearest are: .*H100/,
    )
    expect((await run(['engine', '--port', '99999'])).err).toContain('0 to 65535')
    expect((await run(['engine', '--api-key-env', 'NO_SUCH'])).err).toContain('NO_SUCH, which is not set')
    const taken = await startEngine({ profile: 'demo/slow' })
    try {
      expect((await run(['engine', '--port', String(taken.port)])).err).toContain(
        'something else listens there already',
      )
    } finally {
      await taken.close()
    }
  })
})
