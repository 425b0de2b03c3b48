/** What every engine kind in the registry must keep. */
import { describe, expect, it } from 'vitest'
import type { Dialect } from '../../src/engines/adapter.ts'
import { ENGINE_KINDS, engineAdapter } from '../../src/engines/registry.ts'
import { captures, fixture, runTap } from '../engines/captures.ts'

const DIALECTS: readonly Dialect[] = ['openai', 'responses', 'anthropic', 'tgi']
const PAGES = [
  'vllm-0.32.0/metrics-under-load.txt',
  'tgi-3.3.7/metrics-busy.txt',
  'llamacpp-11549/metrics-busy.txt',
]

describe.each(ENGINE_KINDS)('engine %s', (kind) => {
  const adapter = engineAdapter(kind)

  it('carries its own name and sane paths', () => {
    expect(adapter.kind).toBe(kind)
    for (const path of [adapter.healthPath, adapter.metricsPath ?? '/', ...adapter.routes])
      expect(path).toMatch(/^\/[\w/]*$/)
    expect(new Set(adapter.routes).size).toBe(adapter.routes.length)
    expect(adapter.routes).toContain('/v1/chat/completions')
  })

  it('owns headers in lower case, and no field that clients need', () => {
    for (const header of adapter.ownedHeaders) expect(header).toBe(header.toLowerCase())
    for (const field of ['model', 'messages', 'prompt', 'max_tokens', 'stream'])
      expect(adapter.ownedFields).not.toContain(field)
  })

  it('probes with one token on a route that it has', () => {
    const { path, body } = adapter.probe('served-name')
    expect(adapter.routes).toContain(path)
    expect(body).toMatch(/"max(_new)?_tokens":1\b/)
    expect(() => JSON.parse(body)).not.toThrow()
  })

  it('takes foreign pages for no data, and never throws', () => {
    for (const page of ['', '<html>', 'a 1', '{"json":true}', '\0\n\0'])
      expect(adapter.parseLoad(page)).toBeUndefined()
    for (const name of PAGES) {
      const sample = adapter.parseLoad(fixture(name).toString('latin1'))
      if (sample === undefined) continue
      expect(sample.gauges.runningRequests).toBeGreaterThanOrEqual(0)
      expect(sample.gauges.waitingRequests).toBeGreaterThanOrEqual(0)
    }
  })

  it('sees the first content of every captured stream that has any, and no more than is there', () => {
    for (const capture of captures()) {
      const options = { dialect: capture.dialect, stripUsage: false }
      const seen = runTap(adapter.createTap(options), [capture.bytes])
      const frames = capture.bytes.toString('latin1').split('\n\n').length
      expect(seen.contentEvents, capture.name).toBeLessThan(frames)
      expect(seen.contentEvents > 0 || seen.error !== undefined, capture.name).toBe(true)
    }
  })

  it('passes any dialect’s bytes through its tap', () => {
    for (const dialect of DIALECTS) {
      const bytes = Buffer.from(': hi\n\ndata: {"x":1}\n\ndata: half')
      expect(runTap(adapter.createTap({ dialect, stripUsage: true }), [bytes]).out.equals(bytes)).toBe(true)
    }
  })

  it('takes 429 and 503 for full, other 4xx for the client’s fault, 5xx for its own', () => {
    const body = Buffer.from('{}')
    const seen = [200, 400, 404, 422, 429, 500, 502, 503].map(
      (status) => adapter.classify(status, body).class,
    )
    const client = 'client_error'
    expect(seen).toEqual(['ok', client, client, client, 'full', 'engine_error', 'engine_error', 'full'])
  })
})
