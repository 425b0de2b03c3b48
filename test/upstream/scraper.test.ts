/** Which pages of an engine are read for its load and its limits, and what is made of those that are not there. */
import { afterEach, expect, it } from 'vitest'
import type { EngineKind } from '../../src/engines/adapter.ts'
import { engineAdapter } from '../../src/engines/registry.ts'
import { systemClock } from '../../src/upstream/clock.ts'
import { Connection } from '../../src/upstream/connection.ts'
import { type Scraper, startScraper } from '../../src/upstream/scraper.ts'
import { fixture } from '../engines/captures.ts'
import { until } from '../support/deadline.ts'
import { type ScriptedEngine, scriptedEngine } from '../support/scripted-engine.ts'

let engine: ScriptedEngine
let connection: Connection
let scraper: Scraper
let outcomes: string[]

/** Starts to look at an engine that has these pages and answers 404 to all others. */
async function look(
  kind: EngineKind,
  pages: Readonly<Record<string, [number, string | Buffer]>>,
): Promise<void> {
  engine = await scriptedEngine()
  const adapter = engineAdapter(kind)
  for (const path of [...adapter.loadPaths, ...adapter.limitsPaths]) show(path, [404, ''])
  for (const [path, page] of Object.entries(pages)) show(path, page)
  connection = new Connection({ url: engine.url, connectTimeoutMs: 500 }, systemClock)
  outcomes = []
  scraper = startScraper({
    connection,
    adapter,
    servedName: 'tiny',
    clock: systemClock,
    periodMs: 5,
    onView: ({ outcome }) => outcomes.push(outcome),
  })
}
function show(path: string, [status, body]: readonly [number, string | Buffer]): void {
  engine.on(path, (exchange) => exchange.respond(status, body))
}
function looksAt(path: string): number {
  return engine.requests.filter((request) => request.path === path).length
}
afterEach(async () => {
  scraper.close()
  await connection.close()
  await engine.close()
})

it('reads the slots of a llama.cpp without --metrics, and tells no failure of it', async () => {
  await look('llamacpp', {
    '/metrics': [501, fixture('llamacpp-11549/err-no-metrics.json')],
    '/slots': [200, fixture('llamacpp-11549/slots.json')],
    '/props': [200, fixture('llamacpp-11549/props.json')],
  })
  await until(() => looksAt('/slots') > 4, 'several looks')
  expect(new Set(outcomes)).toEqual(new Set(['ok']))
  expect(scraper.view.limits).toEqual({ maxNumSeqs: 2, maxModelLenTokens: 4096, kvCapacityTokens: 8192 })
  // A page that is not there is asked for once.
  expect(looksAt('/metrics')).toBe(1)
  expect(looksAt('/props')).toBe(1)
})

it('goes on to another page when the one that it reads goes away', async () => {
  await look('sglang', {
    '/v1/loads': [200, fixture('sglang-0.5.18/loads.json')],
    '/metrics': [200, fixture('sglang-0.5.18/metrics.txt')],
  })
  await until(() => looksAt('/v1/loads') > 2, 'several looks')
  expect(scraper.view.sample?.gauges.waitingRequests).toBe(4)
  expect(looksAt('/metrics')).toBe(0)
  show('/v1/loads', [404, '{"detail":"Not Found"}'])
  await until(() => looksAt('/metrics') > 2, 'looks at the other page')
  expect(scraper.view.sample?.gauges.waitingRequests).toBe(5)
  expect(new Set(outcomes)).toEqual(new Set(['ok']))
})

it('tells that no page is readable by the first of them', async () => {
  await look('sglang', { '/v1/loads': [500, ''], '/metrics': [404, ''] })
  await until(() => outcomes.length > 3, 'several looks')
  expect(new Set(outcomes)).toEqual(new Set(['unreadable']))
  expect(scraper.view.message).toBe('status 500')
})

it('asks again for limits until an engine that is still loading has told them', async () => {
  await look('llamacpp', {
    '/metrics': [503, fixture('llamacpp-11549/err-loading.json')],
    '/props': [503, fixture('llamacpp-11549/err-loading.json')],
  })
  await until(() => looksAt('/props') > 1, 'several questions')
  expect(scraper.view.limits).toEqual({})
  show('/metrics', [200, fixture('llamacpp-11549/metrics-idle.txt')])
  show('/props', [200, fixture('llamacpp-11549/props.json')])
  await until(() => scraper.view.limits.maxNumSeqs === 2, 'the limits')
  const asked = looksAt('/props')
  await until(() => looksAt('/metrics') > 10, 'more looks')
  expect(looksAt('/props')).toBe(asked)
})

it('has no data, and no failure, of an engine kind without a load page', async () => {
  await look('openai', { '/v1/models': [200, fixture('vllm-0.32.0/models.json')] })
  await until(() => outcomes.length > 2, 'several looks')
  expect(new Set(outcomes)).toEqual(new Set(['none']))
  expect(scraper.view.sample).toBeUndefined()
  expect(scraper.view.limits).toEqual({ maxModelLenTokens: 8192 })
})
