/** The advice that `sluice validate` prints and `/slo` tells: every figure beside one that is worked out by hand. */
import { describe, expect, it } from 'vitest'
import { learntAdvice } from '../../src/cli/engine-advice.ts'
import type { OfferedStream } from '../../src/core/demand.ts'
import { createSluice } from '../../src/policies/sluice.ts'
import { setUp } from '../admin/admin-rig.ts'
import { loaded } from '../config/files.ts'
import { reportOf } from '../core/core-rig.ts'
import { PRIOR as USUAL_PRIOR } from '../policies/policy-rig.ts'
import { GateWorld } from '../property/gate-world.ts'
import { offerOf, sloOf } from '../slo/facts.ts'
import { run } from './fake-terminal.ts'

const fileOf = (profileId: string, engineArgs = '') => `models:
  - { name: llama, profile: ${profileId}, replicas: [http://10.0.0.11:8000]${engineArgs} }
auth: none
classes:
  chat: { ttft: 500ms, tpot: 50ms }
  reader: { ttft: 2s, tpot: 100ms }
  fast: { ttft: 1s, tpot: 8ms }
  batch: { overload: wait }
`

async function sentencesOf(text: string): Promise<readonly string[]> {
  const { out, code } = await run(['validate', '--format', 'json', '-'], { stdin: text })
  expect(code).toBe(0)
  return JSON.parse(out).files[0].advice[0].sentences
}

describe('the advice of sluice validate', () => {
  it('is what the profile of the model comes to', async () => {
    // By the table of profiles: a decode step, and what a prompt token adds to it, in ms.
    const stepMs = (sequences: number) => 11.0401 + 0.5 + 0.030338 * sequences + 8.0109e-5 * 1000 * sequences
    const perTokenMs = 0.053247
    // A prompt alone in chunks of 2048: its tokens, its attention, half a millisecond a step and 15 a request.
    const idleMs = (tokens: number) =>
      15 + Math.ceil(tokens / 2048) * (5.9938 + 0.5) + perTokenMs * tokens + (2.9519e-6 * tokens ** 2) / 2
    for (const [tokens, targetMs] of [
      [7188, 500],
      [22_234, 2000],
      [12_977, 1000],
    ] as const) {
      expect(idleMs(tokens)).toBeLessThanOrEqual(targetMs)
      expect(idleMs(tokens + 1)).toBeGreaterThan(targetMs)
    }
    expect(stepMs(1).toFixed(1)).toBe('11.7')
    // With all 256 slots taken a step is still well within 95 % of 50 ms.
    expect(stepMs(256)).toBeLessThan(47.5)
    const stallMs = (tokens: number) => perTokenMs * tokens + (2.9519e-6 * tokens ** 2) / 2
    expect(stallMs(598 - 64)).toBeLessThanOrEqual(47.5 - stepMs(64))
    expect(stallMs(599 - 64)).toBeGreaterThan(47.5 - stepMs(64))
    const duty = (tpotMs: number) => (0.95 * tpotMs - stepMs(64)) / stallMs(2048 - 64)
    expect([duty(50), duty(100)].map((ratio) => Math.floor(100 * ratio))).toEqual([25, 68])
    // A step that checks 4 guesses of each of 256 sequences, over the tokens that it yields.
    const guessingMs = 1.2 * stepMs(256) + 4 * 256 * perTokenMs
    expect(guessingMs / ((1 - 0.7 ** 5) / 0.3)).toBeLessThan(stepMs(256))

    const refused = 'miss ttft even on an idle replica and are refused as infeasible'
    expect(await sentencesOf(fileOf('Llama-3.1-8B/A100-80G-SXM/tp1'))).toEqual([
      "fast: tpot 8ms can't be met even by one stream alone: a decode step takes 11.7 ms; raise tpot, or use a faster engine",
      `chat: prompts over 7188 tokens ${refused}`,
      `reader: prompts over 22234 tokens ${refused}`,
      `fast: prompts over 12977 tokens ${refused}`,
      'chat: tpot allows a batch of 256; with 64 streams 25 % of steps may prefill a full chunk',
      'reader: tpot allows a batch of 256; with 64 streams 68 % of steps may prefill a full chunk',
      'max_num_batched_tokens: up to 598 keeps every tpot in each step (tightest: chat); it is 2048, so Sluice has to hold prefill back',
      'speculative decoding (4 guesses, 70 % right) pays at any batch',
    ])
  })

  it('goes by the arguments that the file gives of the engine', async () => {
    const told = await sentencesOf(
      fileOf('Llama-3.1-8B/A100-80G-SXM/tp1', ', engine_args: { max_num_batched_tokens: 512 }'),
    )
    expect(told).toContain('chat: tpot allows a batch of 256; with 64 streams any step may prefill')
    expect(told).toContain(
      'max_num_batched_tokens: up to 598 keeps every tpot in each step (tightest: chat); it is 512, which is within',
    )
  })

  it('says from which batch on guessing costs goodput', async () => {
    // demo/slow: 25.5 ms a step and 0.51 ms a sequence of 1000 tokens; 4 guesses of a sequence cost 1 ms to check.
    const gainMs = (batch: number) =>
      ((1 - 0.7 ** 5) / 0.3 - 1.2) * (25 + 0.5 + (0.5 + 1e-5 * 1000) * batch) - 4 * 0.25 * batch
    expect(gainMs(202)).toBeGreaterThan(0)
    expect(gainMs(203)).toBeLessThan(0)
    const args = ', engine_args: { max_num_seqs: 256, kv_capacity_tokens: 1000000 }'
    expect(await sentencesOf(fileOf('demo/slow', args))).toContain(
      'speculative decoding (4 guesses, 70 % right) costs goodput in batches of 203 and more',
    )
  })
})

/** About what the engine below shows; the rest is learnt from it. */
const PRIOR = { ...USUAL_PRIOR, uncertaintyRatio: 0.05 }

const CONFIG = loaded(`models:
  - { name: m, replicas: [http://10.0.0.11:8000] }
auth: none
classes:
  chat: { ttft: 500ms, tpot: 50ms }
  dash: { ttft: 30ms, tpot: 8ms }
`)

function demandOf(): readonly OfferedStream[] {
  const shape = { promptTokens: 800, uncachedTokens: 600, outputTokens: 200, sequences: 1 }
  return ['chat', 'dash'].map((name) => ({ slo: sloOf({ name }), requestsPerSec: 2, ...shape }))
}

/** A scheduler that has served so many requests of one replica, and the admin port that tells of it. */
function served(requests: number) {
  const scheduler = createSluice({ priors: { g: PRIOR } })
  const world = new GateWorld(scheduler)
  const limits = { maxNumSeqs: 256, maxNumBatchedTokens: 2048, kvCapacityTokens: 450_000 }
  world.tell({ kind: 'replicaChanged', replica: reportOf('r1', { limits }) })
  for (let i = 0; i < requests; i++) {
    const promptTokens = 100 + 150 * (i % 12)
    const slo = sloOf({ ttftMs: 60_000, maxWaitMs: 60_000 })
    const offer = offerOf(slo, { requestId: `p${i}`, receivedAtMs: world.nowMs, promptTokens })
    world.tell({ kind: 'offer', offer })
    for (const permit of [...world.permits.values()]) {
      world.pass(17 + 0.06 * promptTokens)
      world.firstToken(permit)
      world.pass(8 * 10.2)
      world.progress([permit], 8)
      world.settle(permit, 'completed')
    }
  }
  const { json } = setUp({ advice: () => learntAdvice(CONFIG, scheduler, world.gate.state, demandOf) })
  return { scheduler, json }
}

interface Learnt {
  readonly groups: readonly { readonly step: Readonly<Record<string, number>> }[]
}

describe('the advice of /slo', () => {
  it('is what the learnt step comes to', async () => {
    const { scheduler, json } = served(80)
    expect(scheduler.trust('m')).toBe('trusted')
    const { advice } = (await json('/slo')) as { advice: readonly { readonly engines: readonly object[] }[] }
    const [step = {}] = (scheduler.snapshot() as Learnt).groups.map((group) => group.step)
    const { baseMs = 0, perSequenceMs = 0, per1kContextMs = 0, requestOverheadMs = 0 } = step
    const { perChunkMs = 0, per1kPrefillMs = 0, per1mPairsMs = 0 } = step
    const promptMs = (tokens: number) => (per1kPrefillMs * tokens) / 1000 + (per1mPairsMs * tokens ** 2) / 2e6
    const stallMs = (tokens: number) => perChunkMs + promptMs(tokens)
    // Half through its answer a request of that demand has 800 + 200 / 2 tokens.
    const stepMs = (sequences: number) => baseMs + (perSequenceMs + 0.9 * per1kContextMs) * sequences
    const spareMs = 0.95 * 50 - stepMs(64)
    const idleMs = (tokens: number) =>
      requestOverheadMs + Math.ceil(tokens / 2048) * (baseMs + perChunkMs) + promptMs(tokens)
    const longest = (tookMs: (tokens: number) => number, mostMs: number) => {
      let tokens = 0
      while (tookMs(tokens + 1) <= mostMs) tokens++
      return tokens
    }
    const longestFor = (targetMs: number) => longest(idleMs, targetMs)
    const batch = Math.floor((0.95 * 50 - baseMs) / (perSequenceMs + 0.9 * per1kContextMs))
    const dutyRatio = spareMs / stallMs(2048 - 64)
    expect(dutyRatio).toBeLessThan(1)
    const near = (value: number) => Number(value.toPrecision(4))
    expect(advice).toMatchObject([
      {
        model: 'm',
        trust: 'trusted',
        engines: [
          {
            max_num_batched_tokens: 2048,
            assumed_sequences: 64,
            assumed_context_tokens: 900,
            lone_decode_step_ms: near(stepMs(1)),
            speculation_costs_from_sequences: null,
            classes: [
              {
                class: 'chat',
                unmet_even_idle: [],
                typical_prompt_tokens: 600,
                longest_prompt_tokens: longestFor(500),
                largest_batch: Math.min(256, batch),
                largest_max_num_batched_tokens: 64 + longest(stallMs, spareMs),
                prefill_duty_ratio: near(dutyRatio),
              },
              {
                class: 'dash',
                unmet_even_idle: ['ttft', 'tpot'],
                longest_prompt_tokens: longestFor(30),
                largest_batch: 0,
                largest_max_num_batched_tokens: 0,
                prefill_duty_ratio: 0,
              },
            ],
          },
        ],
      },
    ])
    expect(JSON.stringify(advice)).toContain(
      'dash: a typical prompt of 600 tokens misses ttft even on an idle replica',
    )
  })

  it('is none while nothing that was learnt is believed', async () => {
    const { json } = served(0)
    expect(await json('/slo')).toMatchObject({ advice: [{ model: 'm', trust: 'fallback', engines: [] }] })
  })
})
