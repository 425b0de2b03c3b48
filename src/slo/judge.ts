/** Judges one finished request against the promise of its class: the only place where good and bad are decided. */
import type { Draft } from '../core/draft.ts'
import type { Judge, JudgeFacts, SloVerdict } from '../core/records.ts'
import type { SloClass } from '../core/request.ts'
import { hasTargets, ttftTargetMs } from '../core/request.ts'
import type { Ms } from '../core/units.ts'

/** Why a verdict is not good, or what of a good one was left out (`slow_reader`). */
export const VERDICT_CAUSES = {
  ttft: 'The first token came too late.',
  tpot: 'The tokens after the first came too slowly.',
  e2e: 'The whole answer came too late.',
  empty: 'The stream ended well but held no generated token, so no first token ever came.',
  shed: 'Sluice refused it.',
  truncated: 'The stream broke after its first content.',
  failed: 'The replica failed before any content, and so did a second one or none was left.',
  timeout: 'The replica stayed silent past a limit.',
  draining: 'Sluice ended it while shutting down.',
  left_late: 'The client left without a token, after the deadline for the first one.',
  left_early: 'The client left before anything that the class promises was due.',
  client_error: "The client's own mistake, answered by the engine with a 4xx.",
  tenant_limit: "The tenant's own limit refused it.",
  no_targets: 'The class promises nothing, or nothing of such a request (/tokenize, /detokenize).',
  slow_reader: 'The client read too slowly, so its decode pace says nothing about the engine.',
} as const satisfies Record<string, string>

export type VerdictCause = keyof typeof VERDICT_CAUSES

/** The causes that can exclude a request; each is counted apart. */
export const EXCLUSION_CAUSES = [
  'left_early',
  'client_error',
  'tenant_limit',
  'no_targets',
  'slow_reader',
] as const satisfies readonly VerdictCause[]

interface Indicators {
  readonly ttftGood?: boolean
  readonly tpotGood?: boolean
  readonly e2eGood?: boolean
}

/**
 * Good when the request completed and met each target of its class, bad when it was late, shed, failed or cut off,
 * excluded when it says nothing about the service. Shed and never dispatched requests carry no single indicators.
 * A target is met up to and including its own value.
 */
export const judge: Judge = (facts) => {
  if (!hasTargets(facts.offer.slo) || facts.offer.kind === 'convert') return excluded('no_targets')
  switch (facts.outcome) {
    case 'client_error':
      return excluded('client_error')
    case 'shed':
      return facts.shedReason === 'tenant_limit' ? excluded('tenant_limit') : bad('shed')
    case 'completed':
      return facts.offer.streamed ? judgeStream(facts) : judgeWhole(facts)
    case 'client_left':
    case 'cancelled':
      return judgeLeft(facts)
    case 'truncated':
      return bad('truncated', broken(facts))
    case 'upstream_failed':
      return bad('failed', broken(facts))
    case 'upstream_timeout':
      return bad('timeout', broken(facts))
    case 'draining':
      return bad('draining', broken(facts))
    default:
      return facts.outcome satisfies never
  }
}

/**
 * The time in ms from receipt within which a whole answer of that many tokens per choice keeps the class's promise:
 * its e2e target, else ttft + tpot x (tokens - 1). Without a tpot target the whole answer is due when the first token
 * is, since a client that does not stream sees its first token with its last. Undefined when nothing bounds it.
 */
export function wholeAnswerTargetMs(
  slo: SloClass,
  promptTokens: number,
  tokensPerChoice: number,
): Ms | undefined {
  if (slo.e2eMs !== undefined) return slo.e2eMs
  const ttftMs = ttftTargetMs(slo, promptTokens)
  return ttftMs === undefined ? undefined : ttftMs + (slo.tpotMs ?? 0) * Math.max(0, tokensPerChoice - 1)
}

function judgeStream(facts: JudgeFacts): SloVerdict {
  const { slo } = facts.offer
  const ttftMissing = slo.ttftMs !== undefined && facts.ttftMs === undefined
  const indicators: Draft<Indicators> = ttftMissing ? { ttftGood: false } : measuredSoFar(facts)
  if (slo.e2eMs !== undefined && !facts.slowReader) indicators.e2eGood = facts.e2eMs <= slo.e2eMs
  if (ttftMissing) return bad('empty', indicators)
  return fromIndicators(indicators, facts.slowReader && (slo.tpotMs !== undefined || slo.e2eMs !== undefined))
}

/** A whole answer gives no TTFT or TPOT sample; its pace shows in its end alone. */
function judgeWhole(facts: JudgeFacts): SloVerdict {
  const { slo } = facts.offer
  const targetMs = wholeAnswerTargetMs(slo, facts.promptTokens, facts.outputTokens / facts.offer.sequences)
  if (targetMs === undefined) return { kind: 'good' }
  if (facts.slowReader) return excluded('slow_reader')
  const inTime = facts.e2eMs <= targetMs
  const indicators = slo.e2eMs === undefined ? {} : { e2eGood: inTime }
  return inTime ? { kind: 'good', ...indicators } : bad('e2e', indicators)
}

function judgeLeft(facts: JudgeFacts): SloVerdict {
  const { slo, streamed } = facts.offer
  const e2eLate = slo.e2eMs !== undefined && facts.e2eMs > slo.e2eMs
  const inStream = streamed && facts.ttftMs !== undefined && facts.outcome === 'client_left'
  return inStream ? judgeLeftInStream(facts, e2eLate) : judgeLeftWaiting(facts, e2eLate)
}

function judgeLeftInStream(facts: JudgeFacts, e2eLate: boolean): SloVerdict {
  const indicators = {
    ...measuredSoFar(facts),
    ...(e2eLate && !facts.slowReader ? { e2eGood: false } : {}),
  }
  const leftOut = facts.slowReader && facts.offer.slo.tpotMs !== undefined
  return Object.keys(indicators).length === 0 && !leftOut
    ? excluded('left_early')
    : fromIndicators(indicators, leftOut)
}

/** It had seen nothing yet: it left early unless what it waited for was due already. */
function judgeLeftWaiting(facts: JudgeFacts, e2eLate: boolean): SloVerdict {
  const { slo, streamed, sequences, maxOutputTokens } = facts.offer
  const ttftMs = ttftTargetMs(slo, facts.promptTokens)
  // An answer that never came whole has no length; the longest one that the client allowed is the fairest guess.
  const tokensPerChoice = facts.outputTokens > 0 ? facts.outputTokens / sequences : (maxOutputTokens ?? 1)
  const deadlineMs = streamed ? ttftMs : wholeAnswerTargetMs(slo, facts.promptTokens, tokensPerChoice)
  const firstLate = deadlineMs !== undefined && facts.e2eMs > deadlineMs
  if (!firstLate && !e2eLate) return excluded('left_early')
  if (facts.outcome === 'cancelled') return bad('left_late')
  return bad('left_late', {
    ...(streamed && firstLate ? { ttftGood: false } : {}),
    ...(e2eLate ? { e2eGood: false } : {}),
  })
}

/** Indicators of a request that broke: what was measured counts, and a first token that was already due is late. */
function broken(facts: JudgeFacts): Indicators {
  const { slo, streamed } = facts.offer
  const ttftMs = ttftTargetMs(slo, facts.promptTokens)
  const overdue = streamed && facts.ttftMs === undefined && ttftMs !== undefined && facts.e2eMs > ttftMs
  return {
    ...(overdue ? { ttftGood: false } : measuredSoFar(facts)),
    ...(slo.e2eMs === undefined ? {} : { e2eGood: false }),
  }
}

/** TTFT and TPOT as far as both the target and a sample of a streamed answer exist. */
function measuredSoFar(facts: JudgeFacts): Draft<Indicators> {
  const { slo, streamed } = facts.offer
  const { ttftMs, tpotMs } = facts
  const measured: Draft<Indicators> = {}
  if (!streamed) return measured
  const targetMs = ttftTargetMs(slo, facts.promptTokens)
  if (targetMs !== undefined && ttftMs !== undefined) measured.ttftGood = ttftMs <= targetMs
  if (slo.tpotMs !== undefined && tpotMs !== undefined && !facts.slowReader)
    measured.tpotGood = tpotMs <= slo.tpotMs
  return measured
}

/** Bad by the first missed target; `leftOut` marks what a slow reader hid, and excludes when that was everything. */
function fromIndicators(indicators: Indicators, leftOut: boolean): SloVerdict {
  if (indicators.ttftGood === false) return bad('ttft', indicators)
  if (indicators.tpotGood === false) return bad('tpot', indicators)
  if (indicators.e2eGood === false) return bad('e2e', indicators)
  if (!leftOut) return { kind: 'good', ...indicators }
  const nothingLeft = indicators.ttftGood === undefined && indicators.e2eGood === undefined
  return { kind: nothingLeft ? 'excluded' : 'good', cause: 'slow_reader', ...indicators }
}

function bad(cause: VerdictCause, indicators: Indicators = {}): SloVerdict {
  return { kind: 'bad', cause, ...indicators }
}

function excluded(cause: (typeof EXCLUSION_CAUSES)[number]): SloVerdict {
  return { kind: 'excluded', cause }
}
