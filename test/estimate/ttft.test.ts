/** TTFT from the step model: more work is never sooner, a learnt backlog shrinks with time, and loads are told apart. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { attentionPairs } from '../../src/core/attention.ts'
import { ReplicaLedger } from '../../src/core/ledger.ts'
import { observeDecode, observePrefill, sharedModel, stepModel } from '../../src/estimate/step-model.ts'
import {
  isHeadOverdue,
  loadClass,
  loadOf,
  PROMPT_CLASSES,
  promptClass,
  rawTtftMs,
} from '../../src/estimate/ttft.ts'
import { inFlightOf, reportOf, someOffer } from '../core/core-rig.ts'

const LOAD = { backlogTokens: 0, backlogPairs: 0, sequences: 4, contextTokens: 4000, chunkTokens: 512 }

/** 20 ms + 0.5 per sequence a step, 0.1 ms a prompt token, 5 ms of overhead. */
function learntModel() {
  const model = stepModel()
  for (let i = 0; i < 400; i++) {
    const sequences = 1 + (i % 9)
    const stepMs = 20 + 0.5 * sequences
    observeDecode(model, 8, 8 * stepMs, sequences, 900 * sequences)
    const tokens = 100 + 60 * (i % 25)
    const chunks = Math.ceil(tokens / 512)
    const elapsedMs = 5 + chunks * stepMs + 0.1 * tokens
    const interval = { elapsedMs, starts: 1, prefillTokens: tokens, chunks, steps: chunks, sequences }
    observePrefill(model, { ...interval, pairs: attentionPairs(tokens), contextTokens: 900 * sequences })
  }
  return model
}

const model = learntModel()

describe('TTFT', () => {
  it('is the overhead, the rest of the running step and the prefill', () => {
    const busyMs = rawTtftMs(model, LOAD, 400)
    expect(busyMs / (5 + 0.5 * 22 + 22 + 40)).toBeGreaterThan(0.9)
    expect(busyMs / (5 + 0.5 * 22 + 22 + 40)).toBeLessThan(1.1)
    const behind = rawTtftMs(model, { ...LOAD, backlogTokens: 1000 }, 400)
    expect(behind / (5 + 3 * 22 + 140)).toBeGreaterThan(0.9)
    expect(behind / (5 + 3 * 22 + 140)).toBeLessThan(1.1)
  })

  it('is never sooner for more tokens or more backlog in sight', () => {
    const tokens = fc.integer({ min: 1, max: 20_000 })
    fc.assert(
      fc.property(tokens, tokens, tokens, fc.nat(60), (own, more, backlogTokens, sequences) => {
        const load = { ...LOAD, backlogTokens, sequences, contextTokens: 900 * sequences }
        expect(rawTtftMs(model, load, own + more)).toBeGreaterThanOrEqual(rawTtftMs(model, load, own))
        const longer = { ...load, backlogTokens: backlogTokens + more }
        expect(rawTtftMs(model, longer, own)).toBeGreaterThanOrEqual(rawTtftMs(model, load, own))
      }),
    )
  })

  it('is as many times longer as the replica is slower', () => {
    const slow = sharedModel(model)
    slow.slownessRatio = 2
    expect(rawTtftMs(slow, LOAD, 700)).toBeCloseTo(2 * rawTtftMs(model, LOAD, 700), 9)
    observeDecode(slow, 8, 8 * 2 * 22, 4, 3600)
    expect(rawTtftMs(model, LOAD, 700)).toBeCloseTo(rawTtftMs(slow, LOAD, 700) / 2, 9)
  })

  it('counts off what must have been prefilled since, but never all of it', () => {
    const ledger = new ReplicaLedger(reportOf('r1', { limits: { maxNumBatchedTokens: 512 } }))
    ledger.dispatch(inFlightOf(1, someOffer({ promptTokens: 500 }), { dispatchedAtMs: 0 }))
    ledger.dispatch(inFlightOf(2, someOffer({ promptTokens: 300 }), { dispatchedAtMs: 0 }))
    const at = (nowMs: number) => loadOf(model, ledger, nowMs).backlogTokens
    expect(at(0)).toBe(800)
    expect(at(40)).toBeLessThan(650)
    expect(at(40)).toBeGreaterThan(450)
    expect(at(1e6)).toBeCloseTo(350, 6)
  })

  it('has a class for each kind of load', () => {
    const chunk = LOAD.chunkTokens
    const idle = { ...LOAD, sequences: 0 }
    const queues = [
      idle,
      LOAD,
      ...[10, chunk, 4 * chunk].map((backlogTokens) => ({ ...LOAD, backlogTokens })),
    ]
    const classes = queues.flatMap((load) =>
      [0, 511, 4096].map((tokens) => loadClass(load, promptClass(tokens))),
    )
    expect(classes).toEqual([0, 0, 2, 3, 3, 5, 6, 6, 8, 9, 9, 11, 12, 12, 14])
    expect(promptClass(512)).toBe(1)
    expect(PROMPT_CLASSES).toBe(3)
  })
})

describe('a prompt that the engine does not begin', () => {
  const head = { dispatchedAtMs: 1000, predictedTtftMs: 140, offer: { receivedAtMs: 900, streamed: true } }
  const ledger = (first: object, streams: number) =>
    ({
      head: first,
      decoding: new Map(Array.from({ length: streams }, (_, index) => [index + 2, {}])),
    }) as unknown as ReplicaLedger

  it('is overdue after twice its predicted time in the engine and a little more', () => {
    // 140 ms from receipt are 40 from dispatch: due by 1000 + 2 * 40 + 50.
    expect(isHeadOverdue(ledger(head, 1), 1130)).toBe(false)
    expect(isHeadOverdue(ledger(head, 1), 1131)).toBe(true)
  })

  it('is none where nothing else runs, where nobody predicted, or where its first token is not seen', () => {
    expect(isHeadOverdue(ledger(head, 0), 9000)).toBe(false)
    expect(isHeadOverdue(ledger({ ...head, predictedTtftMs: undefined }, 1), 9000)).toBe(false)
    const unseen = { ...head, offer: { ...head.offer, streamed: false } }
    expect(isHeadOverdue(ledger(unseen, 1), 9000)).toBe(false)
  })
})
