/** Amounts in the file: what they mean, that they survive writing and reading, and what a wrong one is told. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  formatAddress,
  formatCount,
  formatDuration,
  formatShare,
  formatSize,
  type Parsed,
  parseAddress,
  parseCount,
  parseDuration,
  parseRate,
  parseShare,
  parseSize,
} from '../../src/config/units.ts'

fc.configureGlobal({ seed: 20_260_801 })

const read = <T>(parsed: Parsed<T>): T | undefined => (parsed.ok ? parsed.value : undefined)
const advice = (parsed: Parsed<unknown>): string | undefined => (parsed.ok ? undefined : parsed.suggestion)

describe('amounts', () => {
  it.each([
    [parseDuration, '500ms', 500],
    [parseDuration, '1.1s', 1100],
    [parseDuration, '20s', 20_000],
    [parseDuration, '10m', 600_000],
    [parseDuration, '1h', 3_600_000],
    [parseDuration, '30d', 2_592_000_000],
    [parseShare, '99%', 0.99],
    [parseShare, '99.5%', 0.995],
    [parseShare, '0.99', 0.99],
    [parseShare, 0.98, 0.98],
    [parseShare, 1, 1],
    [parseCount, 2000, 2000],
    [parseCount, '500k', 500_000],
    [parseCount, '1.1k', 1100],
    [parseCount, '8M', 8_000_000],
    [parseSize, '32MiB', 33_554_432],
    [parseSize, '1GiB', 1_073_741_824],
    [parseSize, '10MB', 10_000_000],
    [parseRate, '50/s', 50],
    [parseRate, '600/min', 10],
    [parseRate, '7200/h', 2],
  ] as const)('%o reads %s', (parse, text, value) => {
    expect(read(parse(text) as Parsed<number>)).toBe(value)
  })

  it.each([
    [parseDuration(500, 'ms'), 'write 500ms'],
    [parseDuration('500'), 'write 500s'],
    [parseDuration('5min'), 'write 5m'],
    [parseDuration('50 ms'), 'write 50ms'],
    [parseDuration('2 Hours'), 'write 2h'],
    [parseDuration('soon'), 'write for example 500ms, 20s, 10m, 1h or 30d'],
    [parseShare(99), 'write 99%'],
    [parseShare('a lot'), 'write for example 99% or 0.99'],
    [parseSize(32), 'write 32MiB'],
    [parseSize('1Gi'), 'write 1GiB'],
    [parseSize('10mb'), 'write 10MB'],
    [parseCount('500K'), 'write 500k'],
    [parseCount('8 M'), 'write 8M'],
    [parseRate(50), 'write 50/s or 50/min'],
    [parseRate('500k/minute'), 'write 500k/min'],
    [parseAddress(8080), 'write 127.0.0.1:8080, or 0.0.0.0:8080 for every interface'],
    [parseAddress(':8080'), 'write 127.0.0.1:8080, or 0.0.0.0:8080 for every interface'],
  ] as const)('a wrong one is told the right spelling: %#', (parsed, suggestion) => {
    expect(parsed.ok).toBe(false)
    expect(advice(parsed)).toBe(suggestion)
  })

  it.each([
    null,
    undefined,
    true,
    {},
    [],
    '',
    ' ',
    '-1s',
    '1e3',
    '1.2.3s',
    '5constructor',
    '5__proto__',
    `${'9'.repeat(40)}d`,
  ])('none of them is made of %j', (value) => {
    for (const parse of [parseDuration, parseSize, parseCount, parseShare, parseRate, parseAddress]) {
      expect(parse(value).ok).toBe(false)
    }
  })

  it('say the same after being written and read again', () => {
    const whole = fc.integer({ min: 1, max: 2 ** 45 })
    fc.assert(fc.property(whole, (ms) => read(parseDuration(formatDuration(ms))) === ms))
    fc.assert(fc.property(whole, (bytes) => read(parseSize(formatSize(bytes))) === bytes))
    fc.assert(fc.property(whole, (count) => read(parseCount(formatCount(count))) === count))
    const shares = fc.integer({ min: 0, max: 1e6 }).map((millionths) => millionths / 1e6)
    fc.assert(fc.property(shares, (share) => read(parseShare(formatShare(share))) === share))
  })

  it('addresses say the same after being written and read again', () => {
    const host = fc.oneof(
      fc.ipV4(),
      fc.ipV6().filter((ip) => !ip.includes('/')),
      fc.constant('localhost'),
    )
    const law = fc.property(host, fc.integer({ min: 0, max: 65_535 }), (name, port) => {
      expect(read(parseAddress(formatAddress({ host: name, port })))).toEqual({ host: name, port })
    })
    fc.assert(law)
  })

  it('refuse a suggestion that would itself be refused', () => {
    const law = fc.property(fc.oneof(fc.string(), fc.double(), fc.integer()), (value) => {
      const parsed = parseDuration(value)
      const spelt = advice(parsed)?.match(/^write (\S+)$/)?.[1]
      return spelt === undefined || parseDuration(spelt).ok
    })
    fc.assert(law)
  })
})
