/** The log line of a request, the ring of decisions, the changes that are told once, and the state file. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { decisionHeaders } from '../../src/edge/decision-words.ts'
import { Attainment } from '../../src/slo/attainment.ts'
import { DecisionRing } from '../../src/telemetry/decision-ring.ts'
import { MAX_TEXT_CHARS } from '../../src/telemetry/log.ts'
import { MAX_CANDIDATES, MAX_PREFIX_BLOCKS } from '../../src/telemetry/request-line.ts'
import { startRuntimeMonitor } from '../../src/telemetry/runtime.ts'
import { loadSloState, saveSloState } from '../../src/telemetry/state-file.ts'
import { offerOf } from '../slo/facts.ts'
import { catalog, chat, decisionOf, good, rig, shed } from './rig.ts'

describe('the line of a request', () => {
  it('is one JSON object with the numbers of its decision and of its end', () => {
    const { observer, lines } = rig()
    const trace = { traceId: 'abcd', spanId: 'ef01', sampled: true, path: '/', arrivedAtMs: 0, attempts: [] }
    const settlement = { ...good(), replicaId: 'r1', predictedTtftMs: 210.12345 }
    observer.onDecision(decisionOf(settlement.offer))
    observer.onSettled(settlement, { status: 200, finishReason: 'stop', traceId: 'abcd', trace })
    expect(lines()).toHaveLength(1)
    expect(lines('request')[0]).toMatchObject({
      level: 'info',
      v: 1,
      request_id: 'r1',
      trace_id: 'abcd',
      span_id: 'ef01',
      model: 'm',
      class: 'chat',
      decision: 'queued',
      outcome: 'completed',
      status: 200,
      finish_reason: 'stop',
      slo: 'good',
      replica: 'r1',
      ttft_ms: 300,
      predicted_ttft_ms: 210.123,
      prompt_tokens: 200,
      counted_by: 'usage',
      trusted: true,
      config_digest: 'abc',
      candidates: [{ replica: 'r1', gate: 'ok', predicted_ttft_ms: 210, backlog_tokens: 90 }],
    })
    expect(lines()[0]?.time).toMatch(/^\d{4}-\d\d-\d\dT/)
  })

  it('says queued by the time in the gate, not by the time that reading the request took', () => {
    const { observer, lines } = rig()
    const settlement = { ...good(), queueMs: 40 }
    observer.onDecision(decisionOf(settlement.offer, { waitedMs: 0.4 }))
    observer.onSettled(settlement)
    expect(lines('request')[0]).toMatchObject({ decision: 'admitted', queue_ms: 40, waited_ms: 0.4 })
    const record = decisionOf(settlement.offer, { waitedMs: 0.4 })
    expect(decisionHeaders(record, 'r1')['x-sluice-decision']).toBe('admitted')
    expect(decisionHeaders({ ...record, waitedMs: 2 }, 'r1')['x-sluice-decision']).toBe('queued')
  })

  it('has its own decision and not that of a later request with its id, whose line comes after', () => {
    const { observer, lines } = rig()
    for (const receivedAtMs of [1, 2])
      observer.onDecision(decisionOf(offerOf(chat, { requestId: 'same', receivedAtMs })))
    for (const receivedAtMs of [1, 2]) observer.onSettled(good({ requestId: 'same', receivedAtMs }))
    expect(lines('request').map(({ candidates }) => candidates !== undefined)).toEqual([false, true])
  })

  it('is there for a shed and for a client that left before any decision', () => {
    const { observer, lines } = rig()
    const verdict = { kind: 'shed', reason: 'slo_unreachable', retryAfterMs: 2500 } as const
    observer.onDecision(decisionOf(shed().offer, { verdict, wouldHave: { kind: 'wait', untilAtMs: 9 } }))
    observer.onSettled(shed())
    observer.onSettled({ ...shed(), outcome: 'cancelled' })
    expect(lines()[0]).toMatchObject({
      decision: 'shed',
      reason: 'slo_unreachable',
      retry_after_ms: 2500,
      would_have: 'wait',
    })
    expect(lines()[1]).toMatchObject({ decision: 'left' })
    expect(lines()[1]?.candidates).toBeUndefined()
  })

  it('stays small whatever the client sent', () => {
    const { observer, text } = rig()
    const huge = 'x'.repeat(100_000)
    const prefixHashes = Array.from({ length: 5000 }, (_, index) => `hash${index}`)
    const offer = offerOf(chat, { requestId: huge, tenant: huge, prefixHashes })
    const view = decisionOf(offer).candidates[0]!
    const candidates = Array.from({ length: 500 }, (_, index) => ({
      ...view,
      replicaId: `r${index}`,
      predictedTtftMs: 500 - index,
    }))
    observer.onDecision(
      decisionOf(offer, { candidates, verdict: { kind: 'admit', replicaId: 'r0', permitId: 1 } }),
    )
    observer.onSettled({ ...good(), requestId: huge, offer }, { finishReason: huge })
    expect(text[0]?.length).toBeLessThan(5000)
    const line = JSON.parse(text[0] ?? '') as Record<string, unknown[]> & { request_id: string }
    expect(line.request_id).toHaveLength(MAX_TEXT_CHARS + 1)
    expect(line.prefix_hashes).toHaveLength(MAX_PREFIX_BLOCKS)
    expect(line.candidates).toHaveLength(MAX_CANDIDATES)
    expect(line.candidates?.slice(0, 2)).toMatchObject([{ replica: 'r0' }, { replica: 'r499' }])
    expect(line.candidates_seen).toBe(500)
  })
})

describe('other lines', () => {
  it('leave repetitions out, count them, and say so in the next line', async () => {
    const { observer, lines, clock } = rig()
    for (let index = 0; index < 100; index++) observer.onBounced('r1', 'reset', `socket ${index}`)
    observer.onBounced('r2', 'reset', 'another')
    expect(lines('attempt_bounced')).toHaveLength(6)
    clock.nowMs = 10_000
    observer.onBounced('r1', 'reset', 'later')
    expect(lines('attempt_bounced').at(-1)).toMatchObject({ message: 'later', suppressed_before: 95 })
    const page = String(await observer.metrics.scrape('text'))
    expect(page).toMatch(/bounces_total\{reason="reset"\} 102/)
    expect(page).toMatch(/log_suppressed_total 95/)
  })

  it('tell of faults with a stack, rejections, clamps, replicas and the end', () => {
    const { observer, lines } = rig()
    observer.onFault(new Error('boom', { cause: 'why' }))
    observer.onFault('odd')
    observer.onRejected('unauthorized', undefined)
    observer.onClamped('acme', 'voice')
    observer.onReplicaState('r1', 'live', 'down', 'breaker open')
    observer.onEvent('draining', { waiting: 3 })
    expect(lines().map((line) => line.event)).toEqual([
      'fault',
      'fault',
      'request_rejected',
      'class_clamped',
      'replica_state',
      'draining',
    ])
    expect(lines('fault')[0]).toMatchObject({ level: 'error', error: 'boom', cause: 'why' })
    expect(lines('fault')[0]?.stack).toContain('observer.test')
    expect(lines('replica_state')[0]).toMatchObject({
      level: 'warn',
      from: 'live',
      to: 'down',
      why: 'breaker open',
    })
  })

  it('tell a change of SLO state once', () => {
    const { observer, lines } = rig()
    for (let index = 0; index < 50; index++) observer.onSettled(shed())
    observer.health()
    observer.health()
    expect(lines('slo_state')).toHaveLength(1)
    expect(lines('slo_state')[0]).toMatchObject({
      level: 'error',
      class: 'chat',
      to: 'critical',
      raised_by: '1h/5m',
    })
  })
})

describe('DecisionRing', () => {
  it('joins a decision and its end, newest first, and filters', () => {
    const ring = new DecisionRing(10, 1e6)
    for (const requestId of ['a', 'b']) ring.decided(decisionOf(offerOf(chat, { requestId })))
    ring.settled(good({ requestId: 'a' }))
    ring.settled(shed({ requestId: 'c' }))
    expect(ring.last(9).map((entry) => entry.requestId)).toEqual(['c', 'a', 'b'])
    expect(ring.last(9, { verdict: 'good' }).map((entry) => entry.requestId)).toEqual(['a'])
    expect(ring.last(9, { verdict: 'admit' }).map((entry) => entry.requestId)).toEqual(['a', 'b'])
    expect(ring.last(9, { className: 'none' })).toEqual([])
    expect(ring.last(1, { requestId: 'b' })[0]?.decision?.verdict.kind).toBe('admit')
    expect(ring.last(2)).toHaveLength(2)
  })

  it('keeps to its bounds of count and bytes, and leaves out what is larger than all of it', () => {
    const ring = new DecisionRing(5, 1e6)
    for (let index = 0; index < 50; index++) ring.settled(good({ requestId: `r${index}` }))
    expect(ring.size).toBe(5)
    const small = new DecisionRing(1000, 10_000)
    for (let index = 0; index < 50; index++) small.settled(good({ requestId: `r${index}` }))
    expect(small.bytes).toBeLessThanOrEqual(10_000)
    expect(small.last(1)[0]?.requestId).toBe('r49')
    const before = [small.size, small.bytes]
    small.settled(good({ requestId: 'x'.repeat(100_000) }))
    expect([small.size, small.bytes]).toEqual(before)
  })

  it('mixes nothing of two requests with one id', () => {
    const ring = new DecisionRing(5, 1e6)
    const first = { requestId: 'same', receivedAtMs: 1, promptTokens: 10 }
    const second = { requestId: 'same', receivedAtMs: 2, promptTokens: 20 }
    ring.decided(decisionOf(offerOf(chat, first)))
    ring.settled(good(first))
    ring.decided(decisionOf(offerOf(chat, second)))
    const [entry] = ring.last(9)
    expect(entry?.decision?.offer.promptTokens).toBe(20)
    expect(entry?.settlement).toBeUndefined()
    // The client of a third left before there was a decision.
    ring.settled(shed({ requestId: 'same', receivedAtMs: 3, promptTokens: 30 }))
    expect(
      ring.last(9).map(({ decision, settlement }) => [decision, settlement?.offer.promptTokens]),
    ).toEqual([[undefined, 30]])
  })

  it('keeps a request that an earlier one of its id outlives', () => {
    const ring = new DecisionRing(5, 1e6)
    const [first, second] = [1, 2].map((receivedAtMs) => ({ requestId: 'same', receivedAtMs }))
    ring.decided(decisionOf(offerOf(chat, first)))
    ring.decided(decisionOf(offerOf(chat, second)))
    ring.settled(good(first))
    expect(ring.last(9)).toMatchObject([{ decision: { offer: { receivedAtMs: 2 } } }])
    expect(ring.last(9)[0]?.settlement).toBeUndefined()
  })

  it('keeps no prefix hashes', () => {
    const ring = new DecisionRing(5, 1e6)
    ring.decided(decisionOf(offerOf(chat, { prefixHashes: ['h'] })))
    expect(ring.last(1)[0]?.decision?.offer.prefixHashes).toEqual([])
  })
})

describe('the state file', () => {
  const inFolder = async (use: (path: string) => Promise<void>): Promise<void> => {
    const folder = await mkdtemp(join(tmpdir(), 'sluice-'))
    try {
      await use(join(folder, 'slo.json'))
    } finally {
      await rm(folder, { recursive: true })
    }
  }

  it('carries the budget over a restart', () =>
    inFolder(async (path) => {
      const before = new Attainment(catalog)
      before.count(good(), 5)
      before.count(shed(), 5)
      await saveSloState(path, before, 10, 1_000_000)
      const after = new Attainment(catalog)
      expect(await loadSloState(path, after, 3, 1_060_000)).toBe(true)
      expect(after.share({ model: 'm', class: 'chat', product: 'p' }, 'all', 'period', 3)).toEqual({
        good: 1,
        bad: 1,
      })
    }))

  it('may be absent, and says what to do when it is something else', () =>
    inFolder(async (path) => {
      const attainment = new Attainment(catalog)
      expect(await loadSloState(path, attainment, 0, 0)).toBe(false)
      for (const text of ['', '{', '[]', 'null', '{"savedAtUnixMs":1,"attainment":{}}']) {
        await writeFile(path, text)
        await expect(loadSloState(path, attainment, 0, 0), text).rejects.toThrow(/remove/)
      }
      expect(attainment.keys()).toEqual([])
    }))

  it('leaves no half file behind when it can’t be written', () =>
    inFolder(async (path) => {
      const attainment = new Attainment(catalog)
      await expect(saveSloState(join(path, 'no', 'x.json'), attainment, 0, 0)).rejects.toThrow(/ENOENT/)
      await saveSloState(path, attainment, 0, 0)
      expect(JSON.parse(await readFile(path, 'utf8'))).toMatchObject({ attainment: { version: 1 } })
    }))
})

describe('the runtime monitor', () => {
  it('reads finite numbers from the first moment on and stops', () => {
    const monitor = startRuntimeMonitor()
    const { loopLag, ...rest } = monitor.sample()
    for (const value of [...Object.values(loopLag), ...Object.values(rest)])
      expect(value).toBeGreaterThanOrEqual(0)
    monitor.close()
    monitor.close()
  })
})
