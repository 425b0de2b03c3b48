/** The log's lines: one JSON object each, whatever the fields hold, and nothing below its level. */
import { describe, expect, it, vi } from 'vitest'
import { createLog, type LogLevel } from '../../src/telemetry/log.ts'

function logInto(level: LogLevel = 'info') {
  const lines: string[] = []
  const log = createLog({ level, destination: { write: (line) => void lines.push(line) }, nowMs: () => 0 })
  return { log, lines }
}

describe('a log line', () => {
  it('is one line of JSON with level, time, event and the fields that have a value', () => {
    const { log, lines } = logInto()
    const text = 'a "quoted"\nline \u2028 and \ud83d\ude00'
    log.line('info', 'request', { text, count: 1.5, none: undefined, never: Number.NaN, list: [{ a: 1 }] })
    expect(lines).toHaveLength(1)
    expect(lines[0]?.indexOf('\n')).toBe((lines[0]?.length ?? 0) - 1)
    const { time, ...rest } = JSON.parse(lines[0] ?? '')
    expect(rest).toEqual({ level: 'info', event: 'request', text, count: 1.5, never: null, list: [{ a: 1 }] })
    expect(new Date(time).toISOString()).toBe(time)
  })

  it('tells the time to the millisecond, within a second and when the clock is set back', () => {
    const { log, lines } = logInto()
    const times = [999, 1000, 1007, 1999, 500].map((ms) => Date.UTC(2026, 0, 2) + ms)
    const now = vi.spyOn(Date, 'now')
    for (const unixMs of times) {
      now.mockReturnValue(unixMs)
      log.line('info', 'said')
    }
    now.mockRestore()
    expect(lines.map((line) => JSON.parse(line).time)).toEqual(times.map((ms) => new Date(ms).toISOString()))
  })

  it('needs no fields', () => {
    const { log, lines } = logInto()
    log.line('warn', 'stopped')
    expect(JSON.parse(lines[0] ?? '')).toMatchObject({ level: 'warn', event: 'stopped' })
  })

  it('below the level is not written, and silent writes none', () => {
    for (const [level, written] of [
      ['debug', 4],
      ['warn', 2],
      ['silent', 0],
    ] as const) {
      const { log, lines } = logInto(level)
      for (const each of ['debug', 'info', 'warn', 'error'] as const) log.line(each, 'said')
      expect(lines).toHaveLength(written)
    }
  })
})
