/** `sluice simulate` and `sluice engine`: what they print and what they refuse. */
import { describe, expect, it } from 'vitest'
import type { Simulation } from '../../src/cli/simulate.ts'
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
    expect(await good('--burst', '4')).not.toEqual(plain)
    expect(await good('--prior')).not.toEqual(plain)
    expect((await good('--mix', 'voice'))?.classes.map(({ className }) => className)).toEqual(['voice'])
  })

  it.each([
    [['--scheduler', 'nope'], 'is none of sluice, round-robin'],
    [['--rate', '1', '--load', '1'], 'either --rate or --load'],
    [['--profile', 'demo/slwo', '--rate', '1'], 'unknown profile "demo/slwo"; the nearest are: demo/slow'],
    [['--replicas', '0'], 'at least 1'],
  ])('refuses %j', async (args, message) => {
    const { err, code } = await run(['simulate', ...args])
    expect(code).toBeGreaterThan(0)
    expect(err).toContain(message)
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
