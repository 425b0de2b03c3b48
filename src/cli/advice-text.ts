/** Says advice on an engine in sentences with numbers. */
import { formatCount, formatDuration } from '../config/units.ts'
import type { ClassAdvice, EngineAdvice } from '../core/engine-advice.ts'
import type { SloClass } from '../core/request.ts'
import { USUAL_SPECULATION } from '../estimate/engine-advice.ts'

/** One sentence each, most urgent first. `slos` are the classes by name, as they are for that model. */
export function adviceSentences(
  advice: EngineAdvice,
  slos: Readonly<Record<string, SloClass>>,
): readonly string[] {
  const { classes } = advice
  return [
    ...classes.flatMap((row) => unmetSentences(row, advice, slos[row.className])),
    ...classes.flatMap(promptSentence),
    ...classes.flatMap((row) => paceSentence(row, advice)),
    ...budgetSentence(advice),
    speculationSentence(advice),
  ]
}

function unmetSentences(row: ClassAdvice, { loneStepMs }: EngineAdvice, slo: SloClass | undefined) {
  const { className, unmet, typicalPromptTokens, longestPromptTokens = 0 } = row
  const ttft =
    typicalPromptTokens === undefined
      ? `${className}: no prompt has its first token in time, even on an idle replica; raise ttft`
      : `${className}: a typical prompt of ${tokens(typicalPromptTokens)} misses ttft even on an idle replica, which is in time up to ${tokens(longestPromptTokens)}; raise ttft, or give it ttft_per_1k_tokens`
  const tpot = `${className}: tpot ${formatDuration(slo?.tpotMs ?? 0)} can't be met even by one stream alone: a decode step takes ${loneStepMs.toFixed(1)} ms; raise tpot, or use a faster engine`
  return [...(unmet.includes('ttft') ? [ttft] : []), ...(unmet.includes('tpot') ? [tpot] : [])]
}

function promptSentence({ className, unmet, longestPromptTokens }: ClassAdvice): readonly string[] {
  if (longestPromptTokens === undefined || unmet.includes('ttft')) return []
  return [
    `${className}: prompts over ${tokens(longestPromptTokens)} miss ttft even on an idle replica and are refused as infeasible`,
  ]
}

function paceSentence(row: ClassAdvice, { state }: EngineAdvice): readonly string[] {
  const { className, unmet, largestBatch, prefillDutyRatio } = row
  if (largestBatch === undefined || unmet.includes('tpot')) return []
  const batch = `${className}: tpot allows a batch of ${largestBatch}`
  if (prefillDutyRatio === undefined) return [batch]
  const duty =
    prefillDutyRatio === 1
      ? 'any step may prefill'
      : `${Math.floor(100 * prefillDutyRatio)} % of steps may prefill a full chunk`
  return [`${batch}; with ${Math.min(state.sequences, largestBatch)} streams ${duty}`]
}

function budgetSentence({ classes, state }: EngineAdvice): readonly string[] {
  const kept = classes.filter((row) => row.largestBudgetTokens !== undefined && !row.unmet.includes('tpot'))
  const tightest = Math.min(...kept.map((row) => row.largestBudgetTokens ?? 0))
  const of = kept.find((row) => row.largestBudgetTokens === tightest)?.className
  if (of === undefined) return []
  const now = `it is ${formatCount(state.budgetTokens)}`
  if (tightest === 0) return [`max_num_batched_tokens: no value keeps the tpot of ${of} in each step; ${now}`]
  const verdict = tightest >= state.budgetTokens ? 'which is within' : 'so Sluice has to hold prefill back'
  return [
    `max_num_batched_tokens: up to ${formatCount(tightest)} keeps every tpot in each step (tightest: ${of}); ${now}, ${verdict}`,
  ]
}

function speculationSentence({ speculationCostsFrom }: EngineAdvice): string {
  const { draftTokens, acceptanceRatio } = USUAL_SPECULATION
  const kind = `speculative decoding (${draftTokens} guesses, ${100 * acceptanceRatio} % right)`
  return Number.isFinite(speculationCostsFrom)
    ? `${kind} costs goodput in batches of ${speculationCostsFrom} and more`
    : `${kind} pays at any batch`
}

function tokens(count: number): string {
  return `${formatCount(Math.floor(count))} tokens`
}
