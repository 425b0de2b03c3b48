/** Laws of the engine model under arbitrary traffic and limits. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { EngineModel } from '../../src/sim/engine-model.ts'
import type { EngineOptions, EngineRequest } from '../../src/sim/engine-types.ts'
import { engine, hashes, type PlainStep, plain, request, run } from './engine-model-rig.ts'

interface Arrival {
  readonly atMs: number
  readonly promptTokens: number
  readonly outputs: readonly number[]
  readonly family: number
  readonly priority: number
  readonly abortAfterMs: number | undefined
}

const arrivals = fc.array(
  fc.record({
    atMs: fc.integer({ min: 0, max: 3000 }),
    promptTokens: fc.integer({ min: 1, max: 150 }),
    outputs: fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 3 }),
    family: fc.integer({ min: 0, max: 2 }),
    priority: fc.integer({ min: -1, max: 1 }),
    abortAfterMs: fc.option(fc.integer({ min: 0, max: 1500 }), { nil: undefined, freq: 4 }),
  }),
  { minLength: 1, maxLength: 25 },
)
const limits = fc.record({
  kvBlocks: fc.integer({ min: 12, max: 60 }),
  maxNumSeqs: fc.integer({ min: 1, max: 8 }),
  maxNumBatchedTokens: fc.integer({ min: 8, max: 128 }),
  policy: fc.constantFrom('fcfs' as const, 'priority' as const),
  prefixCaching: fc.boolean(),
  seed: fc.integer(),
})

/** Drives arrivals and aborts in order of time, calling `check` between events, and drains the engine. */
function drive(
  options: Partial<EngineOptions>,
  plan: readonly Arrival[],
  check: (model: EngineModel) => void,
) {
  const model = engine({ ...options, jitterRatio: 0.1, maxModelLenTokens: 190 })
  const actions = plan.flatMap((arrival, at) => [
    {
      atMs: arrival.atMs,
      act: () => submitted.push([at, model.submit(toRequest(arrival, at), arrival.atMs)]),
    },
    ...(arrival.abortAfterMs === undefined
      ? []
      : [
          {
            atMs: arrival.atMs + arrival.abortAfterMs,
            act: () => void (model.abort(`r${at}`) && aborted.add(`r${at}`)),
          },
        ]),
  ])
  actions.sort((a, b) => a.atMs - b.atMs)
  const submitted: [number, string][] = []
  const aborted = new Set<string>()
  const steps: PlainStep[] = []
  for (const action of actions) {
    model.advanceTo(action.atMs, (report) => {
      steps.push(plain(report))
      check(model)
    })
    action.act()
    check(model)
  }
  model.advanceTo(1e9, (report) => {
    steps.push(plain(report))
    check(model)
  })
  return { model, steps, submitted, aborted }
}

function toRequest(arrival: Arrival, at: number): EngineRequest {
  return {
    id: `r${at}`,
    promptTokens: arrival.promptTokens,
    outputTokens: arrival.outputs,
    prefixHashes: hashes(`f${arrival.family}`, Math.floor(arrival.promptTokens / 32)),
    prefixExtentTokens: 32,
    priority: arrival.priority,
  }
}

describe('laws over arbitrary traffic', { timeout: 60_000 }, () => {
  it('conserves blocks, keeps limits, and ends every request once with the tokens asked for', () => {
    fc.assert(
      fc.property(limits, arrivals, (options, plan) => {
        const { model, steps, submitted, aborted } = drive(options, plan, (running) => {
          // Plain comparisons: these run for every step of every run.
          const { heldBlocks, availableBlocks, totalBlocks } = running.kv
          if (heldBlocks + availableBlocks !== totalBlocks) throw new Error('blocks were lost or made up')
          if (running.gauges().runningSequences > options.maxNumSeqs)
            throw new Error('the batch is too large')
        })
        expect(submitted.every(([, outcome]) => outcome === 'accepted')).toBe(true)
        expect(model.inFlightSequences).toBe(0)
        expect(model.prefillBacklogTokens).toBe(0)
        expect(model.kv.availableBlocks).toBe(model.kv.totalBlocks)
        const tokens = new Map<string, number>()
        for (const step of steps) {
          if (step.prefillTokens + step.decodeTokens > options.maxNumBatchedTokens)
            throw new Error('over budget')
          for (const name of step.emitted) tokens.set(name, (tokens.get(name) ?? 0) + 1)
        }
        const finished = steps.flatMap((step) => step.finished)
        expect(new Set(finished).size).toBe(finished.length)
        for (const [at, arrival] of plan.entries()) {
          if (aborted.has(`r${at}`)) continue
          for (const [index, output] of arrival.outputs.entries()) {
            expect(finished).toContain(`r${at}.${index}`)
            expect(tokens.get(`r${at}.${index}`)).toBe(output)
          }
        }
      }),
      { numRuns: 100 },
    )
  })

  it('gives every running decode its token in every step that preempts nobody', () => {
    fc.assert(
      fc.property(limits, arrivals, (options, plan) => {
        const { steps, aborted } = drive({ ...options, policy: 'fcfs' }, plan, () => {})
        const streaming = new Set<string>()
        for (const step of steps) {
          for (const name of step.preempted) streaming.delete(name)
          for (const name of streaming) {
            const left = aborted.has(name.split('.')[0] ?? '')
            if (!left && !step.emitted.includes(name)) throw new Error(`${name} got no token`)
          }
          for (const name of step.emitted) streaming.add(name)
          for (const name of step.finished) streaming.delete(name)
        }
      }),
      { numRuns: 100 },
    )
  })

  it('starves nobody under fcfs: first tokens come in order of arrival when prompts are single chunks', () => {
    fc.assert(
      fc.property(arrivals, (plan) => {
        const calm = plan.map((arrival, at) => ({
          ...arrival,
          outputs: [1],
          atMs: at,
          abortAfterMs: undefined,
        }))
        const { steps } = drive({ kvBlocks: 20, maxNumSeqs: 4, maxNumBatchedTokens: 190 }, calm, () => {})
        expect(steps.flatMap((step) => step.finished)).toEqual(calm.map((_, at) => `r${at}.0`))
      }),
      { numRuns: 100 },
    )
  })

  it('is the same for the same seed, and only then', () => {
    fc.assert(
      fc.property(limits, arrivals, (options, plan) => {
        const once = drive(options, plan, () => {}).steps
        expect(drive(options, plan, () => {}).steps).toEqual(once)
        const other = drive({ ...options, seed: options.seed + 1 }, plan, () => {}).steps
        // All may have left before the first step.
        if (once.length > 0) expect(other).not.toEqual(once)
      }),
      { numRuns: 50 },
    )
  })

  it('is never slower for a cached prefix on an idle engine', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 2000 }),
        fc.integer({ min: 1, max: 64 }),
        (promptTokens, extents) => {
          const ttft = (family: string) => {
            const model = engine()
            model.submit(request('warm', 2000, 1, { prefixHashes: hashes('p', 120) }), 0)
            run(model)
            model.submit(request('x', promptTokens, 1, { prefixHashes: hashes(family, extents) }), 10_000)
            return run(model).at(-1)?.endedAtMs ?? Number.NaN
          }
          expect(ttft('p')).toBeLessThanOrEqual(ttft('other'))
        },
      ),
      { numRuns: 60 },
    )
  })
})
