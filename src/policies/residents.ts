/** What the running streams of a replica allow: the stall that they can bear, and what renews the batch. */
import { pairsOf, type ReplicaLedger } from '../core/ledger.ts'
import type { PoolId } from '../core/request.ts'
import type { Ms, Tokens } from '../core/units.ts'
import { TPOT_USE_RATIO } from '../estimate/margins.ts'
import { cautiousDecodeStepMs, prefillStallMs, type StepModel } from '../estimate/step-model.ts'
import { chunkTokens } from '../estimate/step-windows.ts'
import { keptBy } from './kept.ts'
import type { Learnt } from './learnt.ts'
import { type Streams, streamsOf } from './streams.ts'

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
   * STEADY). L is a mean: by the length that few fall below, a young batch would seem to be renewed in no time.
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
  const { slackMs, tpotMs, renewalMs } = readResidents(reading)
  const fresh = { slackMs, tpotMs, renewalMs, readAtMs: nowMs, version, lastTokenAtMs }
  kept(learnt).set(ledger, fresh)
  return fresh
}

/**
 * The least slack among running streams: the time that stream j may lose and still meet TPOT_j over all its tokens,
 * slack_j = TPOT_j*g - elapsed + rem*(TPOT_j - step) (decision notes, F3). g is taken at its last progress. Only what
 * is still to come is planned with a margin; what is done is known. A stream is lost, and no longer vetoes, only when
 * it would be late without any margin. One pass for this and for what renews the batch.
 */
function readResidents({ ledger, learnt, model, stepMs }: Reading): Residents {
  const streams = streamsOf(ledger, learnt)
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
  for (let row = 0; row < streams.count; row++) {
    const itsPool = streams.pools[row] ?? ''
    if (itsPool !== pool) tokensPerEvent = learnt.tokensPerEvent(itsPool)
    pool = itsPool
    const inFlight = streams.inFlights[row]
    const { contentEvents = 0, lastTokenAtMs } = inFlight ?? {}
    const sequences = streams.sequences[row] ?? 1
    const made = (contentEvents * tokensPerEvent) / sequences
    const left = leftOf(streams, row, made)
    const uncached = streams.uncachedTokens[row] ?? 0
    const pairs = inFlight === undefined ? 0 : pairsOf(inFlight)
    renewingMs += prefillStallMs(model, uncached, chunk, pairs)
    tokens += sequences * Math.max(made + 1, streams.wholeTokens[row] ?? 0)
    const targetMs = streams.targetMs[row] ?? Number.NaN
    if (Number.isNaN(targetMs)) continue
    const firstTokenAtMs = streams.firstTokenAtMs[row] ?? 0
    const banked = targetMs * made - ((lastTokenAtMs ?? firstTokenAtMs) - firstTokenAtMs)
    if (banked + left * (targetMs - stepMs) < -LOST_BY_MS) continue
    slackMs = Math.min(slackMs, Math.max(0, banked + left * (targetMs * TPOT_USE_RATIO - nextStepMs)))
    tpotMs = Math.min(tpotMs, targetMs)
  }
  return { slackMs, tpotMs, renewalMs: tokens > 0 ? renewingMs / tokens : 0 }
}

/**
 * Also notes its whole expected length, given how far it is. Streams found running are longer than most, so a batch is
 * said to be renewed a little too slowly; the exact figure kept batches too small wherever there was too much work.
 */
function leftOf(streams: Streams, row: number, madeTokens: Tokens): Tokens {
  const sinceTokens = madeTokens - (streams.readTokens[row] ?? 0)
  const known = streams.leftTokens[row] ?? 0
  if (sinceTokens < LEFT_KEPT_TOKENS) return Math.max(1, known - sinceTokens)
  const left = streams.remaining(row, madeTokens, SLACK_LENGTH_QUANTILE)
  streams.readTokens[row] = madeTokens
  streams.leftTokens[row] = left
  streams.wholeTokens[row] = madeTokens + streams.remaining(row, madeTokens, 'mean')
  return left
}
