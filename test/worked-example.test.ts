/** Holds the worked example of docs/decisions.md to the code: its log line follows from what it says was learnt. */
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import {
  decodeStepMs,
  prefillMs,
  prefillStallMs,
  requestOverheadMs,
  type StepModel,
  stepModel,
} from '../src/estimate/step-model.ts'
import { sureMissRatio } from '../src/estimate/trust.ts'
import { type EngineLoad, rawTtftMs } from '../src/estimate/ttft.ts'
import type { Outlook } from '../src/policies/outlook.ts'
import { depthTokens } from '../src/policies/plan-state.ts'

const TTFT_MS = 300
const BUDGET_TOKENS = 2048
const SLOWNESS = [1.00236, 0.99765] as const
/** Prompts that had been sent and had no token; the line counts only streams that decode. */
const PREFILLING = 1

interface Line {
  readonly received_at_ms: number
  readonly decided_at_ms: number
  readonly queue_ms: number
  readonly candidates: readonly CandidateLine[]
}

interface CandidateLine {
  readonly gate: string
  readonly predicted_ttft_ms: number
  readonly bound_ttft_ms: number
  readonly uncached_tokens: number
  readonly backlog_tokens: number
  readonly running_sequences: number
  readonly bearable_stall_ms: number
  readonly decode_step_ms: number
}

interface Learnt {
  readonly step: {
    readonly base_ms: number
    readonly per_sequence_ms: number
    readonly per_1k_context_ms: number
    readonly request_overhead_ms: number
    readonly per_chunk_ms: number
    readonly per_1k_prefill_ms: number
  }
  readonly ttft_factors: { readonly p50: number; readonly p80: number }
}

const page = readFileSync(new URL('../docs/decisions.md', import.meta.url), 'utf8')
const [line, learnt] = [...page.matchAll(/```json\n(.*?)```/gs)].map(([, text]): unknown =>
  JSON.parse(text ?? ''),
) as [Line, Learnt]

function modelOf(slownessRatio: number): StepModel {
  const { step } = learnt
  const model = stepModel({
    baseMs: step.base_ms,
    perSequenceMs: step.per_sequence_ms,
    perContextTokenMs: step.per_1k_context_ms / 1000,
    requestOverheadMs: step.request_overhead_ms,
    perChunkMs: step.per_chunk_ms,
    perPrefillTokenMs: step.per_1k_prefill_ms / 1000,
    perPairMs: 0,
    uncertaintyRatio: 1,
  })
  return { ...model, slownessRatio }
}

/** The load that the line tells of; its context follows from the decode step of all that was in flight. */
function loadOf(model: StepModel, candidate: CandidateLine): EngineLoad {
  const { backlog_tokens: backlogTokens, running_sequences: sequences, decode_step_ms: stepMs } = candidate
  const contextMs = stepMs - decodeStepMs(model, sequences + PREFILLING, 0)
  const contextTokens = ((contextMs / model.slownessRatio) * 1000) / learnt.step.per_1k_context_ms
  return { backlogTokens, backlogPairs: 0, sequences, contextTokens, chunkTokens: BUDGET_TOKENS - sequences }
}

describe('the worked example', () => {
  it('spent in the waiting room what the line says', () => {
    expect(line.decided_at_ms - line.received_at_ms).toBeCloseTo(line.queue_ms, 2)
    expect(line.candidates).toHaveLength(SLOWNESS.length)
  })

  it.each([...SLOWNESS.entries()])('predicts replica %d by the formula', (place, slowness) => {
    const candidate = line.candidates[place]
    if (candidate === undefined) throw new Error(`no candidate ${place}`)
    const model = modelOf(slowness)
    const load = loadOf(model, candidate)
    const rawMs = rawTtftMs(model, load, candidate.uncached_tokens)
    const { p50, p80 } = learnt.ttft_factors
    expect(line.queue_ms + rawMs * p50).toBeCloseTo(candidate.predicted_ttft_ms, 1)
    expect(line.queue_ms + rawMs * p80).toBeCloseTo(candidate.bound_ttft_ms, 1)
  })

  it.each([...SLOWNESS.entries()])('lets DEPTH decide on replica %d as it did', (place, slowness) => {
    const candidate = line.candidates[place]
    if (candidate === undefined) throw new Error(`no candidate ${place}`)
    const model = modelOf(slowness)
    const chunkTokens = BUDGET_TOKENS - candidate.running_sequences
    const room = depthTokens({ model, chunkTokens } as Outlook, TTFT_MS, 1)
    const fits = candidate.backlog_tokens + candidate.uncached_tokens <= room
    expect(fits ? 'ok' : 'depth').toBe(candidate.gate)
    expect(prefillStallMs(model, candidate.uncached_tokens, chunkTokens)).toBeLessThan(
      candidate.bearable_stall_ms,
    )
    expect(page).toContain(`${Math.round(room)}`)
  })

  it('has the slack and the plan that the page derives', () => {
    const risk = learnt.ttft_factors.p50 * 1.05
    const [first, second] = line.candidates.map((candidate, place) => {
      const model = modelOf(SLOWNESS[place] ?? 1)
      const load = loadOf(model, candidate)
      const prefill = (tokens: number): number =>
        prefillMs(model, tokens, load.chunkTokens, load.sequences, load.contextTokens)
      const ownMs = (prefill(candidate.uncached_tokens) + requestOverheadMs(model)) * risk
      return { ownMs, planMs: line.queue_ms + prefill(candidate.backlog_tokens) + ownMs }
    })
    const told = [TTFT_MS - line.queue_ms - (second?.ownMs ?? 0), first?.planMs ?? 0, second?.planMs ?? 0]
    for (const ms of told) expect(page).toContain(ms.toFixed(1))
  })

  it('refuses the other one where the miss is sure enough', () => {
    const [planMs, targetMs, waitedMs] = [573.251, 500, 229.925]
    const timesLeft = (planMs - waitedMs) / (targetMs - waitedMs)
    expect(page).toContain(`${(planMs - targetMs).toFixed(3)}`)
    expect(page).toContain(`${timesLeft.toFixed(2)} times`)
    expect(timesLeft).toBeGreaterThan(sureMissRatio('trusted'))
  })
})
