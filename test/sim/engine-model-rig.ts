/** The engine model with a slow profile, and its steps as plain values. */
import { EngineModel } from '../../src/sim/engine-model.ts'
import type { EngineOptions, EngineRequest, StepReport } from '../../src/sim/engine-types.ts'
import { profile } from '../../src/sim/profiles.ts'

export const SLOW = profile('demo/slow')

export function engine(options: Partial<EngineOptions> = {}): EngineModel {
  return new EngineModel({ profile: SLOW, ...options })
}

export function request(
  id: string,
  promptTokens: number,
  outputTokens: number,
  more: Partial<EngineRequest> = {},
): EngineRequest {
  return { id, promptTokens, outputTokens: [outputTokens], ...more }
}

/** Steps as plain values, so that they can be compared and read after the fact. */
export function run(model: EngineModel, untilMs = Number.POSITIVE_INFINITY): PlainStep[] {
  const steps: PlainStep[] = []
  model.advanceTo(untilMs, (report) => steps.push(plain(report)))
  return steps
}

export interface PlainStep {
  readonly startedAtMs: number
  readonly endedAtMs: number
  readonly prefillTokens: number
  readonly decodeTokens: number
  readonly emitted: readonly string[]
  readonly finished: readonly string[]
  readonly preempted: readonly string[]
}

export function plain(report: StepReport): PlainStep {
  const names = (list: StepReport['emitted']) =>
    list.map((sequence) => `${sequence.requestId}.${sequence.index}`)
  const { startedAtMs, endedAtMs, prefillTokens, decodeTokens } = report
  return {
    startedAtMs,
    endedAtMs,
    prefillTokens,
    decodeTokens,
    emitted: names(report.emitted),
    finished: names(report.finished),
    preempted: names(report.preempted),
  }
}

export function hashes(family: string, count: number): string[] {
  return Array.from({ length: count }, (_, at) => `${family}:${at}`)
}
