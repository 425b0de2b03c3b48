/** The client never waits for an answer before it sends the next request, and leaves nothing behind. */
import type { ServerResponse } from 'node:http'
import { afterEach, describe, expect, it } from 'vitest'
import type { SloClass } from '../../src/core/request.ts'
import type { LoadResult } from '../../src/load/outcome.ts'
import type { PlannedRequest } from '../../src/load/plan.ts'
import { runLoad } from '../../src/load/run.ts'
import { answer, closeServers, scripted } from './scripted-server.ts'

const slo: SloClass = {
  name: 'chat',
  ttftMs: 60_000,
  ttftPer1kTokensMs: 0,
  weight: 1,
  overload: 'shed',
  maxWaitMs: 1000,
}
const planOf = (count: number): PlannedRequest[] =>
  Array.from({ length: count }, (_, index) => ({
    id: `r${index}`,
    atMs: index,
    phase: 'all',
    slo,
    promptTokens: 20,
    maxTokens: 1,
    outputTokens: 1,
  }))
afterEach(closeServers)

async function run(
  urls: readonly string[],
  count: number,
  extra: Partial<Parameters<typeof runLoad>[0]> = {},
) {
  const results: LoadResult[] = []
  await runLoad({
    urls,
    model: 'm',
    plan: planOf(count),
    seed: 1,
    drainMs: 10_000,
    onSettled: (result) => results.push(result),
    ...extra,
  })
  return results
}

describe('runLoad', () => {
  it('sends every request although none is answered before the last has come', async () => {
    const held: ServerResponse[] = []
    const server = await scripted((res) => {
      held.push(res)
      if (held.length === 50) for (const each of held) answer(each)
    })
    const results = await run([server.url], 50)
    expect(results.map(({ verdict }) => verdict.kind)).toEqual(Array.from({ length: 50 }, () => 'good'))
  })

  it('sends class, model, length and prompt, and asks for usage', async () => {
    const server = await scripted(answer)
    await run([`${server.url}/v1/`], 1, { apiKey: 'sk-1' })
    expect(server.requests[0]?.headers).toMatchObject({ 'x-slo-class': 'chat', authorization: 'Bearer sk-1' })
    const body = JSON.parse(server.requests[0]?.body ?? '') as { messages: { content: string }[] }
    expect(body).toMatchObject({
      model: 'm',
      max_tokens: 1,
      stream: true,
      stream_options: { include_usage: true },
    })
    expect(body.messages[0]?.content).toHaveLength(80)
  })

  it.each([
    ['server', { max_tokens: 1 }],
    ['exact', { max_tokens: 1, ignore_eos: true }],
    ['simulated', { max_tokens: 1, vllm_xargs: { output_tokens: 1 } }],
  ] as const)('has answers end by the rule %s', async (lengths, fields) => {
    const server = await scripted(answer)
    await run([server.url], 1, { lengths })
    expect(JSON.parse(server.requests[0]?.body ?? '')).toMatchObject(fields)
  })

  it('takes several addresses in turn', async () => {
    const [one, two] = [await scripted(answer), await scripted(answer)]
    await run([one.url, two.url], 10)
    expect([one.requests.length, two.requests.length]).toEqual([5, 5])
  })

  it('leaves what is open when the signal fires, and closes every socket', async () => {
    const stop = new AbortController()
    const server = await scripted((_res, seen) => {
      if (seen === 5) stop.abort()
    })
    const results = await run([server.url], 1000, { signal: stop.signal })
    expect(results.length).toBeGreaterThanOrEqual(5)
    expect(results.length).toBeLessThan(1000)
    expect(new Set(results.map(({ facts }) => facts.outcome))).toEqual(new Set(['client_left']))
    await expect.poll(() => server.sockets.size, { message: 'sockets of the run', timeout: 10_000 }).toBe(0)
  })

  it('leaves what is open after the drain time', async () => {
    const server = await scripted(() => undefined)
    const results = await run([server.url], 3, { drainMs: 1 })
    expect(results.map(({ facts }) => facts.outcome)).toEqual(['client_left', 'client_left', 'client_left'])
  })

  it('tries a refused request again after the wait it was told, when it may', async () => {
    const server = await scripted((res, seen) => {
      if (seen > 1) answer(res)
      else res.writeHead(429, { 'retry-after-ms': '1', 'x-sluice-reason': 'waiting_full' }).end('{}')
    })
    const results = await run([server.url], 1, { retries: 2 })
    expect(results).toMatchObject([{ retries: 1, verdict: { kind: 'good' } }])
    expect(server.requests[1]?.headers['x-stainless-retry-count']).toBe('1')
  })

  it('reports an address that refuses the connection as an error, once a request', async () => {
    const server = await scripted(answer)
    await closeServers()
    const results = await run([server.url], 2)
    expect(results.map(({ error }) => error)).toEqual(['ECONNREFUSED', 'ECONNREFUSED'])
  })
})
