/** What every engine kind in the registry must keep, and what each of them was seen or is documented to answer. */
import { describe, expect, it } from 'vitest'
import type { EngineLimits, ReplicaGauges } from '../../src/core/replica.ts'
import { ROUTES } from '../../src/edge/routes.ts'
import type { Dialect, EngineKind, ResponseClass } from '../../src/engines/adapter.ts'
import { ENGINE_KINDS, engineAdapter } from '../../src/engines/registry.ts'
import { captures, fixture, runTap } from '../engines/captures.ts'

const DIALECTS: readonly Dialect[] = ['openai', 'responses', 'anthropic', 'tgi']

/** The answers of one engine: file, then what is to be read in it. */
interface Answers {
  readonly loads: readonly (readonly [string, Omit<ReplicaGauges, 'seenAtMs'>])[]
  readonly limits: readonly (readonly [string, EngineLimits])[]
  readonly refusals: readonly (readonly [number, string, ResponseClass])[]
  /** Refused inside a stream, under a status of 200. */
  readonly refusedInside: readonly (readonly [string, ResponseClass])[]
  /** The scheduling field for urgency 40. */
  readonly priority: string | undefined
}

/** A new kind has to bring its own. */
const ANSWERS: Readonly<Record<EngineKind, Answers>> = {
  vllm: {
    loads: [
      [
        'vllm-0.32.0/metrics-under-load.txt',
        { runningRequests: 16, waitingRequests: 8, kvUsageRatio: 0.20125786163522008, preemptionsTotal: 0 },
      ],
      ['llm-d-sim-eec055a/metrics-busy.txt', { runningRequests: 2, waitingRequests: 3, kvUsageRatio: 0 }],
    ],
    limits: [
      ['vllm-0.32.0/models.json', { maxModelLenTokens: 8192 }],
      ['llm-d-sim-eec055a/models.json', { maxModelLenTokens: 4096 }],
    ],
    refusals: [
      [503, 'vllm-0.32.0/queue-full-chat.json', 'full'],
      [429, 'llm-d-sim-eec055a/err-full.json', 'full'],
      [500, 'vllm-0.32.0/sigterm-drain20-new.json', 'draining'],
      [500, 'vllm-0.32.0/kill9-worker-new.json', 'engine_error'],
      [400, 'vllm-0.32.0/err-too-long-chat.json', 'client_error'],
      [401, 'vllm-0.32.0/queue-err-no-key.json', 'engine_error'],
    ],
    refusedInside: [
      ['vllm-0.32.0/queue-race-stream-error-event.sse', 'full'],
      ['vllm-0.32.0/kill9-worker-prefilling.sse', 'engine_error'],
    ],
    priority: '-40',
  },
  sglang: {
    loads: [
      ['sglang-0.5.18/loads.json', { runningRequests: 23, waitingRequests: 4, kvUsageRatio: 0.41 }],
      ['sglang-0.5.18/metrics.txt', { runningRequests: 23, waitingRequests: 5, kvUsageRatio: 0.41 }],
    ],
    limits: [
      ['sglang-0.5.18/models.json', { maxModelLenTokens: 32_768 }],
      ['sglang-0.5.18/server-info.json', { maxNumBatchedTokens: 8192 }],
    ],
    refusals: [[503, 'sglang-0.5.18/err-full.json', 'full']],
    refusedInside: [['sglang-0.5.18/err-full-stream.sse', 'full']],
    priority: '40',
  },
  tgi: {
    loads: [['tgi-3.3.7/metrics-busy.txt', { runningRequests: 2, waitingRequests: 2 }]],
    limits: [['tgi-3.3.7/info.json', { maxModelLenTokens: 1024 }]],
    refusals: [
      [429, 'tgi-3.3.7/err-generate-overloaded.json', 'full'],
      [424, 'tgi-3.3.7/err-generate-failed.json', 'engine_error'],
      [422, 'tgi-3.3.7/err-generate-too-long.json', 'client_error'],
      [422, 'tgi-3.3.7/err-no-messages.txt', 'client_error'],
    ],
    refusedInside: [
      ['tgi-3.3.7/err-chat-stream-overloaded.sse', 'full'],
      ['tgi-3.3.7/err-generate-stream-overloaded.sse', 'full'],
      ['tgi-3.3.7/err-generate-stream-too-long.sse', 'client_error'],
      ['tgi-3.3.7/err-chat-stream-failed.sse', 'engine_error'],
    ],
    priority: undefined,
  },
  llamacpp: {
    loads: [
      ['llamacpp-11549/metrics-busy.txt', { runningRequests: 2, waitingRequests: 4 }],
      ['llamacpp-11549/slots.json', { runningRequests: 0, waitingRequests: 0 }],
    ],
    limits: [
      ['llamacpp-11549/props.json', { maxNumSeqs: 2, maxModelLenTokens: 4096, kvCapacityTokens: 8192 }],
    ],
    refusals: [
      [503, 'llamacpp-11549/err-loading.json', 'draining'],
      [400, 'llamacpp-11549/err-too-long.json', 'client_error'],
    ],
    refusedInside: [],
    priority: undefined,
  },
  openai: {
    loads: [],
    limits: [['vllm-0.32.0/models.json', { maxModelLenTokens: 8192 }]],
    refusals: [[503, 'vllm-0.32.0/queue-full-chat.json', 'full']],
    refusedInside: [['vllm-0.32.0/queue-race-stream-error-event.sse', 'full']],
    priority: undefined,
  },
}

const text = (name: string): string => fixture(name).toString('latin1')

describe.each(ENGINE_KINDS)('engine %s', (kind) => {
  const adapter = engineAdapter(kind)
  const { loads, limits, refusals, refusedInside, priority } = ANSWERS[kind]

  it('carries its own name, and paths that are paths', () => {
    expect(adapter.kind).toBe(kind)
    for (const path of [adapter.healthPath, ...adapter.loadPaths, ...adapter.limitsPaths])
      expect(path).toMatch(/^\/[\w/]*$/)
    expect(new Set(adapter.routes).size).toBe(adapter.routes.length)
    expect(adapter.routes).toContain('chat')
  })

  it('owns headers in lower case, and no field that clients need', () => {
    for (const header of adapter.ownedHeaders) expect(header).toBe(header.toLowerCase())
    for (const field of ['model', 'messages', 'prompt', 'max_tokens', 'stream'])
      expect(adapter.ownedFields).not.toContain(field)
  })

  it('probes with one token on a route that it has', () => {
    const { path, body } = adapter.probe('served-name')
    const route = ROUTES.find((candidate) => candidate.path === path)
    expect(adapter.routes).toContain(route?.key)
    expect(body).toMatch(/"max(_new)?_tokens":1\b/)
    expect(() => JSON.parse(body)).not.toThrow()
  })

  it('reads its load from each page that it has, and none from any page of another engine', () => {
    for (const [name, gauges] of loads) expect(adapter.parseLoad(text(name))?.gauges, name).toEqual(gauges)
    expect(adapter.loadPaths.length > 0).toBe(loads.length > 0)
    const foreign = Object.values(ANSWERS).flatMap((answers) => answers.loads)
    const own = new Set(loads.map(([name]) => name))
    for (const [name] of foreign.filter(([page]) => !own.has(page)))
      expect(adapter.parseLoad(text(name)), name).toBeUndefined()
  })

  it('takes what is no page of load for no data, and never throws', () => {
    const pages = [
      '',
      '<html>',
      'a 1',
      '{"json":true}',
      '{"loads":7}',
      '{"loads":[null]}',
      '[]',
      '[{}]',
      '\0\n\0',
    ]
    for (const page of [...pages, '{', '[', 'ray_vllm_num_requests_running 3'])
      expect(adapter.parseLoad(page), page).toBeUndefined()
  })

  it('reads its limits, and none from a page that tells none', () => {
    for (const [name, told] of limits) expect(adapter.parseLimits(text(name), 'tiny'), name).toEqual(told)
    for (const page of ['', '<html>', '{}', '[]', '{"data":[{"id":"x","max_model_len":null}]}', 'null'])
      expect(adapter.parseLimits(page, 'tiny'), page).toEqual({})
  })

  it('knows whose fault each of its refusals is', () => {
    for (const [status, name, expected] of refusals)
      expect(adapter.classify(status, fixture(name)).class, name).toBe(expected)
    for (const [name, expected] of refusedInside) {
      const seen = runTap(adapter.createTap({ dialect: 'openai', stripUsage: false }), [fixture(name)])
      expect(seen.error?.class, name).toBe(expected)
      expect(seen.contentEvents, name).toBe(0)
    }
  })

  it('has urgency in its own words, or none at all', () => {
    expect(adapter.priorityEdit?.(40).priority).toBe(priority)
    if (priority !== undefined) expect(adapter.ownedFields).toContain('priority')
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
