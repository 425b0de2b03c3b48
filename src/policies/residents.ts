/** What the running streams of a replica allow: the stall that they can bear, and what renews the batch. */
import type { InFlight, ReplicaLedger } from '../core/ledger.ts'
import type { PoolId } from '../core/request.ts'
import type { Ms, Tokens } from '../core/units.ts'
import { cautiousDecodeStepMs, prefillStallMs, type StepModel } from '../estimate/step-model.ts'
import { chunkTokens } from '../estimate/step-windows.ts'
import { keptBy } from './kept.ts'
import type { Learnt } from './learnt.ts'

/** Part of each TPOT target that plans may use up; the rest covers what the model does not see. */
export const TPOT_USE_RATIO = 0.95
/**
 * Quantile of a stream's remaining length in SLACK: a stream that ends sooner than thought has no time left to catch
 * up. A stall touches the whole batch, so it must be bearable for ninety-nine in a hundred.
 */
const SLACK_LENGTH_QUANTILE = 0.01
/** A stream's remaining length is read anew every so many tokens. */
const LEFT_KEPT_TOKENS: Tokens = 16
/** Streams that are late by more than this are lost and no longer veto, in ms. */
const LOST_BY_MS: Ms = 20

/** Kept until a permit or a token of the replica moves. */
export interface Residents {
  /** Least slack among its streams, in ms; Infinity with none. */
  readonly slackMs: Ms
  /** Tightest TPOT target among them, in ms; Infinity with none. */
  readonly tpotMs: Ms
  /**
   * In a steady batch each stream that ends is followed by one that must be prefilled, so that B streams of L tokens
   * bring B/L prefills to each step: what one stream adds to each step that way, in ms. Without it a batch grows until
   * decoding alone fills the TPOT target and no room is left for anybody's prefill (Little's law; decision notes, F3
   * STEADY).
   */
  readonly renewalMs: Ms
}

/** The replica as it is read. */
export interface Reading {
  readonly ledger: ReplicaLedger
  readonly learnt: Learnt
  readonly model: StepModel
  /** A decode step there now. */
  readonly stepMs: Ms
  readonly nowMs: Ms
}

interface Kept extends Residents {
  readonly readAtMs: Ms
  readonly version: number
  readonly lastTokenAtMs: Ms
  readonly rows: Row[]
}

/** What the loop below needs of a stream, in one place: it is the costliest loop of all, and memory is its cost. */
interface Row {
  readonly inFlight: InFlight
  readonly pool: PoolId
  readonly sequences: number
  readonly uncachedTokens: Tokens
  /** Undefined where no pace was promised or nobody sees it. */
  readonly targetMs: Ms | undefined
  readonly firstTokenAtMs: Ms
  /** Where it was when what is left of it was read last. */
  madeTokens: Tokens
  leftTokens: Tokens
}

const kept = keptBy<ReplicaLedger, Kept>()

/** May be `keptMs` old as long as no permit moved there. Costs O(streams there) when it is read. */
export function residentsOf(reading: Reading, keptMs: Ms): Residents {
  const { ledger, learnt, nowMs } = reading
  const last = kept(learnt).get(ledger)
  if (last?.version === ledger.version) {
    if (last.lastTokenAtMs === ledger.lastTokenAtMs || nowMs - last.readAtMs < keptMs) return last
  }
  const { version, lastTokenAtMs } = ledger
  const rows = last?.version === version ? last.rows : rowsOf(ledger, last?.rows ?? [])
  const fresh = { ...readResidents(reading, rows), readAtMs: nowMs, version, lastTokenAtMs, rows }
  kept(learnt).set(ledger, fresh)
  return fresh
}

/** A row for each stream, those of before kept: streams leave anywhere but come only at the end. */
function rowsOf({ decoding }: ReplicaLedger, before: readonly Row[]): Row[] {
  const rows: Row[] = []
  let at = 0
  for (const inFlight of decoding.values()) {
    while (at < before.length && before[at]?.inFlight !== inFlight) at++
    rows.push(before[at++] ?? newRow(inFlight))
  }
  return rows
}

function newRow(inFlight: InFlight): Row {
  const { offer, uncachedTokens, firstTokenAtMs } = inFlight
  const isJudged = offer.streamed && firstTokenAtMs !== undefined
  return {
    inFlight,
    pool: offer.pool,
    sequences: offer.sequences,
    uncachedTokens,
    targetMs: isJudged ? offer.slo.tpotMs : undefined,
    firstTokenAtMs: firstTokenAtMs ?? 0,
    madeTokens: Number.NEGATIVE_INFINITY,
    leftTokens: 0,
  }
}

/**
 * The least slack among running streams: the time that stream j may lose and still meet TPOT_j over all its tokens,
 * slack_j = TPOT_j*g - elapsed + rem*(TPOT_j - step) (decision notes, F3). g is taken at its last progress. Only what
 * is still to come is planned with a margin; what is done is known. A stream is lost, and no longer vetoes, only when
 * it would be late without any margin. One pass for this and for what renews the batch.
 */
function readResidents({ ledger, learnt, model, stepMs }: Reading, rows: readonly Row[]): Residents {
  let slackMs = Number.POSITIVE_INFINITY
  let tpotMs = Number.POSITIVE_INFINITY
  const nextStepMs = Math.max(
    stepMs,
    cautiousDecodeStepMs(model, ledger.inFlightSequences + 1, ledger.contextTokens),
  )
  const chunk = chunkTokens(ledger)
  let renewingMs = 0
  let tokens = 0
  let pool: PoolId | undefined
  let tokensPerEvent = 1
  for (const row of rows) {
    const { inFlight, targetMs, sequences } = row
    if (row.pool !== pool) tokensPerEvent = learnt.tokensPerEvent(row.pool)
    pool = row.pool
    const made = (inFlight.contentEvents * tokensPerEvent) / sequences
    const left = leftOf(row, made, learnt)
    renewingMs += prefillStallMs(model, row.uncachedTokens, chunk)
    tokens += sequences * (made + left)
    if (targetMs === undefined) continue
    const elapsedMs = (inFlight.lastTokenAtMs ?? row.firstTokenAtMs) - row.firstTokenAtMs
    const banked = targetMs * made - elapsedMs
    if (banked + left * (targetMs - stepMs) < -LOST_BY_MS) continue
    slackMs = Math.min(slackMs, Math.max(0, banked + left * (targetMs * TPOT_USE_RATIO - nextStepMs)))
    tpotMs = Math.min(tpotMs, targetMs)
  }
  return { slackMs, tpotMs, renewalMs: tokens > 0 ? renewingMs / tokens : 0 }
}

function leftOf(row: Row, madeTokens: Tokens, learnt: Learnt): Tokens {
  const sinceTokens = madeTokens - row.madeTokens
  if (sinceTokens < LEFT_KEPT_TOKENS) return Math.max(1, row.leftTokens - sinceTokens)
  row.madeTokens = madeTokens
  row.leftTokens = learnt.remaining(row.inFlight.offer, madeTokens, SLACK_LENGTH_QUANTILE)
  return row.leftTokens
}
