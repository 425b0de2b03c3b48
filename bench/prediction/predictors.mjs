/** What predicts: the estimator as it ships, and three plain rules. Each has `predict(row)` and `learn(row, said)`. */
import { priorOf } from '../../dist/cli/gate-parts.js'
import { calibration, factor, learnError } from '../../dist/estimate/calibration.js'
import {
  decodeStepMs,
  HALF_STEP,
  observeDecode,
  observePrefill,
  stepModel,
} from '../../dist/estimate/step-model.js'
import { loadClass, promptClass, rawTtftMs } from '../../dist/estimate/ttft.js'
import { leastSquares, sortedInsert } from './arithmetic.mjs'

/** The token budget that is assumed of an engine that says nothing. */
const BATCHED_TOKENS = 2048
/** A row's TPOT is the mean over an answer; the rows don't say of how many tokens. */
const ANSWER_TOKENS = 100
/** The rows bear no time, so nothing grows stale. */
const NOW_MS = 0

/** What waits is taken to be prompts of one length: the rows say only what they come to. */
const backlogPairsOf = ({ backlogTokens, waiting }) => backlogTokens ** 2 / (2 * Math.max(1, waiting))

const loadOf = ({ backlogTokens, waiting, sequences, contextTokens }) => ({
  backlogTokens,
  backlogPairs: backlogPairsOf({ backlogTokens, waiting }),
  sequences,
  contextTokens,
  chunkTokens: Math.max(16, BATCHED_TOKENS - sequences),
})

/**
 * The step model, the TTFT formula and the calibration of src/estimate. A first token is taught as the prefill interval
 * from its dispatch; a TPOT as a decode window, which also holds what was prefilled beside it: the rows don't say.
 */
export function sluice(name, profileId) {
  const model = stepModel(profileId === undefined ? undefined : priorOf(profileId))
  const errors = { ttft: calibration(), tpot: calibration() }
  const classOf = (row) => (row.kind === 'ttft' ? loadClass(loadOf(row), promptClass(row.promptTokens)) : 0)
  return {
    name,
    predict(row) {
      const { kind, promptTokens, sequences, contextTokens } = row
      const rawMs =
        kind === 'ttft'
          ? rawTtftMs(model, loadOf(row), promptTokens)
          : decodeStepMs(model, sequences + 1, contextTokens + promptTokens)
      const at = (level) => rawMs * factor(errors[kind], classOf(row), level, NOW_MS)
      return { rawMs, p50: at('p50'), p80: at('p80'), p95: at('p95') }
    },
    learn(row, { rawMs }) {
      learnError(errors[row.kind], classOf(row), row.observedMs, rawMs, NOW_MS)
      if (row.kind === 'ttft') teachFirstToken(model, row)
      else teachPace(model, row)
    },
  }
}

function teachFirstToken(model, row) {
  const { observedMs, promptTokens, sequences, contextTokens, backlogTokens } = row
  const prefillTokens = backlogTokens + promptTokens
  const chunks = Math.max(1, Math.ceil(prefillTokens / loadOf(row).chunkTokens))
  const steps = chunks + (backlogTokens === 0 && sequences > 0 ? HALF_STEP : 0)
  observePrefill(model, {
    elapsedMs: observedMs,
    starts: 1,
    prefillTokens,
    pairs: backlogPairsOf(row) + promptTokens ** 2 / 2,
    chunks,
    steps,
    sequences,
    contextTokens,
  })
}

function teachPace(model, { observedMs, promptTokens, sequences, contextTokens }) {
  const elapsedMs = ANSWER_TOKENS * observedMs
  observeDecode(model, ANSWER_TOKENS, elapsedMs, sequences + 1, contextTokens + promptTokens)
}

/** The median of what has come so far, and its other quantiles. */
export function constant() {
  const seen = { ttft: [], tpot: [] }
  return {
    name: 'constant (median so far)',
    predict({ kind }) {
      const at = (rank) => seen[kind][Math.floor(rank * seen[kind].length)]
      return { p50: at(0.5), p80: at(0.8), p95: at(0.95) }
    },
    learn: ({ kind, observedMs }) => sortedInsert(seen[kind], observedMs),
  }
}

/** Tokens over throughput: of prompts for the first token, of the batch for the pace; throughputs learnt as means. */
export function throughputRule() {
  const sums = { ttft: { work: 0, ms: 0 }, tpot: { work: 0, ms: 0 } }
  const workOf = ({ kind, backlogTokens, promptTokens, sequences }) =>
    kind === 'ttft' ? backlogTokens + promptTokens : sequences + 1
  return {
    name: 'tokens / throughput',
    predict(row) {
      const { work, ms } = sums[row.kind]
      return { p50: work === 0 ? undefined : (workOf(row) * ms) / work }
    },
    learn(row) {
      const sum = sums[row.kind]
      sum.work += workOf(row)
      sum.ms += row.observedMs
    },
  }
}

/** One line over everything that a row says, fitted to the relative errors of all rows, those to come included. */
export function hindsightLine(rows) {
  const terms = ({ promptTokens, backlogTokens, sequences, waiting, contextTokens }) => [
    1,
    promptTokens,
    backlogTokens,
    sequences,
    waiting,
    contextTokens,
  ]
  const fitted = (kind) => {
    const own = rows.filter((row) => row.kind === kind)
    return own.length === 0
      ? []
      : leastSquares(
          own.map(terms),
          own.map(({ observedMs }) => observedMs),
        )
  }
  const lines = { ttft: fitted('ttft'), tpot: fitted('tpot') }
  return {
    name: 'line fitted in hindsight',
    predict: (row) => ({ p50: terms(row).reduce((sum, term, i) => sum + term * lines[row.kind][i], 0) }),
    learn() {},
  }
}
