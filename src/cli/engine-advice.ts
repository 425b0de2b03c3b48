/** Advice on engines: from the profiles that a configuration names, and from what is learnt while it runs. */
import { type Config, classFor, type ModelConfig } from '../config/config.ts'
import type { OfferedStream } from '../core/demand.ts'
import type { EngineAdvice } from '../core/engine-advice.ts'
import { hasTargets, type SloClass } from '../core/request.ts'
import type { GateState, Scheduler, TrustState } from '../core/scheduler.ts'
import { adviseOn } from '../estimate/engine-advice.ts'
import { stepModel } from '../estimate/step-model.ts'
import { ADVISED_CONTEXT_TOKENS, ADVISED_SEQUENCES } from '../policies/pool-advice.ts'
import { profile, profileIds } from '../sim/profiles.ts'
import { idlePrefillMs } from '../sim/step-time.ts'
import { adviceSentences } from './advice-text.ts'
import { priorOf } from './gate-parts.ts'

/** Advice on one model before it runs. */
export interface ProfileAdvice {
  readonly model: string
  readonly profile: string
  readonly sequences: number
  readonly contextTokens: number
  readonly sentences: readonly string[]
}

/** By the profile of each model that names a known one, and the arguments that the file gives of its engines. */
export function profileAdvice(config: Config): readonly ProfileAdvice[] {
  return config.models.flatMap((model) => {
    const { name, profile: profileId } = model
    if (profileId === undefined || !profileIds().includes(profileId)) return []
    const slos = promisesOf(config, name)
    const advice = adviseByProfile(model, profileId, Object.values(slos))
    const { sequences, contextTokens } = advice.state
    return [
      { model: name, profile: profileId, sequences, contextTokens, sentences: adviceSentences(advice, slos) },
    ]
  })
}

function adviseByProfile(
  { engineArgs }: ModelConfig,
  profileId: string,
  slos: readonly SloClass[],
): EngineAdvice {
  const known = profile(profileId)
  const { defaults, kvCapacityTokens, requestOverheadMs } = known
  const slots = engineArgs.maxNumSeqs ?? defaults.maxNumSeqs
  const budgetTokens = engineArgs.maxNumBatchedTokens ?? defaults.maxNumBatchedTokens
  return adviseOn(
    stepModel(priorOf(profileId), engineArgs.prefillEngines),
    slos.map((slo) => ({ slo })),
    {
      budgetTokens,
      sequences: Math.min(ADVISED_SEQUENCES, slots),
      contextTokens: ADVISED_CONTEXT_TOKENS,
      slots,
      kvCapacityTokens: engineArgs.kvCapacityTokens ?? kvCapacityTokens,
      // Attention over long prompts grows with their square, which step models leave out.
      idleTtftMs: (tokens) => requestOverheadMs + idlePrefillMs(known, tokens, budgetTokens),
    },
  )
}

/** Advice on one model while it runs; `engines` is empty while nothing that was learnt is believed. */
export interface LearntAdvice {
  readonly model: string
  readonly trust: TrustState
  readonly engines: readonly object[]
}

/** By what the predictor has learnt; none in mode `off`. `demandOf` tells what is asked of a model. */
export function learntAdvice(
  config: Config,
  predictor: Scheduler | undefined,
  state: GateState,
  demandOf: (model: string) => readonly OfferedStream[],
): readonly LearntAdvice[] {
  if (predictor === undefined) return []
  return config.models.map(({ name }) => {
    const trust = predictor.trust(name)
    const slos = promisesOf(config, name)
    const advice =
      trust === 'fallback' ? undefined : predictor.advise?.(state, name, Object.values(slos), demandOf(name))
    return { model: name, trust, engines: (advice ?? []).map((one) => asJson(one, slos)) }
  })
}

function promisesOf(config: Config, model: string): Readonly<Record<string, SloClass>> {
  const found = Object.keys(config.classes).flatMap((name): [string, SloClass][] => {
    const slo = classFor(config, name, model)
    return slo === undefined || !hasTargets(slo) ? [] : [[name, slo]]
  })
  return Object.fromEntries(found)
}

function asJson(advice: EngineAdvice, slos: Readonly<Record<string, SloClass>>): object {
  const { state, loneStepMs, classes, speculationCostsFrom } = advice
  return {
    max_num_batched_tokens: state.budgetTokens,
    assumed_sequences: state.sequences,
    assumed_context_tokens: Math.round(state.contextTokens),
    lone_decode_step_ms: rounded(loneStepMs),
    speculation_costs_from_sequences: Number.isFinite(speculationCostsFrom) ? speculationCostsFrom : null,
    classes: classes.map((row) => ({
      class: row.className,
      unmet_even_idle: row.unmet,
      typical_prompt_tokens: rounded(row.typicalPromptTokens),
      longest_prompt_tokens: row.longestPromptTokens ?? null,
      largest_batch: row.largestBatch ?? null,
      largest_max_num_batched_tokens: row.largestBudgetTokens ?? null,
      prefill_duty_ratio: rounded(row.prefillDutyRatio),
    })),
    advice: adviceSentences(advice, slos),
  }
}

function rounded(value: number | undefined): number | null {
  return value === undefined ? null : Number(value.toPrecision(4))
}
