/** The engine model against what is known of vLLM's V1 scheduler. */
import { describe, expect, it } from 'vitest'
import { engine, hashes, request, run } from './engine-model-rig.ts'

describe('one request', () => {
  it('takes the overhead, its chunks and its decodes', () => {
    const model = engine()
    expect(model.submit(request('a', 1000, 3), 100)).toBe('accepted')
    const steps = run(model)
    expect(steps.map((step) => step.prefillTokens)).toEqual([512, 488, 0, 0])
    expect(steps.map((step) => step.decodeTokens)).toEqual([0, 0, 1, 1])
    expect(steps[0]?.startedAtMs).toBeCloseTo(105, 6)
    expect(steps.map((step) => step.emitted.length)).toEqual([0, 1, 1, 1])
    expect(steps[3]?.finished).toEqual(['a.0'])
    expect(model.nextEventAtMs()).toBeUndefined()
    expect(model.inFlightSequences).toBe(0)
    expect(model.kv.availableBlocks).toBe(model.kv.totalBlocks)
  })

  it('counts n as n sequences that share the prompt when it is known', () => {
    const model = engine()
    model.submit({ id: 'n', promptTokens: 100, outputTokens: [2, 3], prefixHashes: hashes('p', 6) }, 0)
    const steps = run(model)
    expect(steps[0]?.prefillTokens).toBe(100 + (100 - 96))
    expect(steps.flatMap((step) => step.finished)).toEqual(['n.0', 'n.1'])
    expect(model.gauges().generationTokensTotal).toBe(5)
  })
})

describe('a step', () => {
  it('serves decodes first, then chunks within the budget', () => {
    const model = engine({ maxNumBatchedTokens: 64, maxNumSeqs: 8 })
    model.submit(request('a', 10, 50), 0)
    run(model, 60)
    model.submit(request('long', 300, 2), 60)
    const mixed = run(model).filter((step) => step.prefillTokens > 0)
    expect(mixed.length).toBeGreaterThanOrEqual(5)
    for (const step of mixed.slice(1)) {
      expect(step.decodeTokens).toBe(1)
      expect(step.prefillTokens + step.decodeTokens).toBeLessThanOrEqual(64)
    }
  })

  it('admits at most maxNumSeqs and lets nobody overtake a head that lacks KV', () => {
    const model = engine({ kvBlocks: 20, maxNumSeqs: 4, maxModelLenTokens: 320 })
    model.submit(request('big', 200, 60), 0)
    model.submit(request('head', 200, 1), 0)
    model.submit(request('small', 10, 1), 0)
    const order = run(model).flatMap((step) => step.finished)
    expect(order).toEqual(['big.0', 'head.0', 'small.0'])
  })

  it('throws the last arrived back when decodes run out of KV, and recomputes it', () => {
    const model = engine({ kvBlocks: 12, maxNumSeqs: 4, maxModelLenTokens: 192 })
    model.submit(request('a', 80, 60), 0)
    model.submit(request('b', 80, 60), 0)
    const steps = run(model)
    expect(steps.flatMap((step) => step.preempted)).toEqual(['b.0'])
    expect(steps.flatMap((step) => step.finished)).toEqual(['a.0', 'b.0'])
    expect(model.gauges().preemptionsTotal).toBe(1)
    const recomputed = steps.reduce((sum, step) => sum + step.prefillTokens, 0)
    expect(recomputed).toBeGreaterThan(160)
  })

  it('goes on at once when the only one who found no block was the one to be thrown back', () => {
    const model = engine({
      policy: 'priority',
      kvBlocks: 12,
      maxNumSeqs: 2,
      maxNumBatchedTokens: 8,
      maxModelLenTokens: 190,
    })
    model.submit(request('small', 1, 1), 0)
    model.submit({ id: 'pair', promptTokens: 90, outputTokens: [24, 1], priority: 1 }, 0)
    model.submit(request('late', 50, 17), 1)
    expect(
      run(model)
        .flatMap((step) => step.finished)
        .toSorted(),
    ).toEqual(['late.0', 'pair.0', 'pair.1', 'small.0'])
    expect(model.gauges().preemptionsTotal).toBeGreaterThan(0)
  })

  it('runs lower priority values first under the priority policy only', () => {
    for (const [policy, expected] of [
      ['fcfs', ['a.0', 'b.0', 'c.0']],
      ['priority', ['a.0', 'c.0', 'b.0']],
    ] as const) {
      const model = engine({ policy, maxNumSeqs: 1 })
      model.submit(request('a', 10, 5), 0)
      model.submit(request('b', 10, 5, { priority: 5 }), 1)
      model.submit(request('c', 10, 5, { priority: -1 }), 2)
      expect(run(model).flatMap((step) => step.finished)).toEqual(expected)
    }
  })
})

describe('prefix cache', () => {
  it('skips what is cached but always computes the last token', () => {
    const model = engine()
    model.submit(request('a', 64, 1, { prefixHashes: hashes('p', 4) }), 0)
    run(model)
    model.submit(request('b', 64, 1, { prefixHashes: hashes('p', 4) }), 1000)
    expect(run(model)[0]?.prefillTokens).toBe(16)
    expect(model.gauges().prefixHitTokensTotal).toBe(48)
  })

  it('evicts the least recently used content first', () => {
    const model = engine({ kvBlocks: 8, maxModelLenTokens: 128 })
    const send = (id: string, family: string, atMs: number) => {
      model.submit(request(id, 60, 1, { prefixHashes: hashes(family, 3) }), atMs)
      return run(model)[0]?.prefillTokens
    }
    expect([send('1', 'x', 0), send('2', 'y', 1000), send('3', 'x', 2000)]).toEqual([60, 60, 12])
    expect(send('4', 'z', 3000)).toBe(60)
    expect(send('5', 'x', 4000)).toBe(12)
    // Two of y's three extents made room for z, its tail first: its head is still of use.
    expect(send('6', 'y', 5000)).toBe(44)
  })
})

describe('queue caps', () => {
  it('count running and waiting sequences, n times for n', () => {
    const model = engine({ maxNumQueuedReqs: 3 })
    expect(model.submit({ id: 'n4', promptTokens: 5, outputTokens: [1, 1, 1, 1] }, 0)).toBe(
      'max_num_queued_reqs',
    )
    expect(model.submit({ id: 'n2', promptTokens: 5, outputTokens: [9, 9] }, 0)).toBe('accepted')
    expect(model.submit(request('a', 5, 9), 0)).toBe('accepted')
    expect(model.submit(request('b', 5, 9), 0)).toBe('max_num_queued_reqs')
    model.abort('n2')
    expect(model.submit(request('b', 5, 9), 0)).toBe('accepted')
  })

  it('bound the prefill backlog, yet take any prompt when it is empty', () => {
    const model = engine({ maxNumQueuedTokens: 300 })
    expect(model.submit(request('huge', 400, 1), 0)).toBe('accepted')
    expect(model.submit(request('more', 10, 1), 0)).toBe('max_num_queued_tokens')
    run(model)
    expect(model.prefillBacklogTokens).toBe(0)
    expect(model.submit(request('more', 10, 1), 9000)).toBe('accepted')
  })

  it('refuse what can never fit', () => {
    expect(engine({ maxModelLenTokens: 100 }).submit(request('a', 90, 11), 0)).toBe('over_context')
  })
})

describe('bad options', () => {
  it('are named', () => {
    expect(() => engine({ maxNumBatchedTokens: 4 })).toThrow(/must be at least maxNumSeqs/)
    expect(() => engine({ kvBlocks: 4, maxModelLenTokens: 100 })).toThrow(
      /must fit into the KV cache of 64 tokens/,
    )
    expect(() => engine().submit(request('a', 0, 1), 0)).toThrow(/needs at least one prompt token/)
  })
})
