/** Turns a workload's request into what the gate sees and what the engine computes. */
import { blockEnds, FIRST_BLOCK_TOKENS } from '../core/prefix-blocks.ts'
import type { Offer, PoolId, SloClass } from '../core/request.ts'
import type { Ms, Ratio, Tokens } from '../core/units.ts'
import type { EngineRequest } from './engine-types.ts'
import type { UnsentRequest } from './workload-types.ts'

/** Tokens under one hash that an engine sees. */
export const EXTENT_TOKENS: Tokens = 64
/** Of them in one of the first blocks that the gate sees. */
const EXTENTS_PER_BLOCK = FIRST_BLOCK_TOKENS / EXTENT_TOKENS

/** Bytes of JSON body per prompt token, for the waiting room's books. */
const BYTES_PER_TOKEN = 4

/** Hashes of the whole blocks within the first `tokens` of prompt and answer: of common text where it is common. */
export function prefixHashes(
  request: UnsentRequest,
  tokens: Tokens = request.promptTokens,
): readonly string[] {
  const { shared, text = request.id, blocks } = request
  const count = Math.floor(tokens / EXTENT_TOKENS)
  if (blocks !== undefined) return Array.from({ length: count }, (_, block) => blockName(blocks, block))
  const sharedCount = Math.floor((shared?.tokens ?? 0) / EXTENT_TOKENS)
  return Array.from({ length: count }, (_, block) => `${block < sharedCount ? shared?.key : text}/${block}`)
}

function blockName({ names, tokens }: NonNullable<UnsentRequest['blocks']>, block: number): string {
  const at = Math.floor((block * EXTENT_TOKENS) / tokens)
  return `${names[at] ?? names.at(-1)}/${block}`
}

/** What the edge would know of a request. */
export interface Intake {
  readonly pool: PoolId
  readonly retryCount: number
  readonly hashes: readonly string[]
  /** Counted over true prompt tokens. */
  readonly countRatio: Ratio
  readonly receivedAtMs: Ms
}

/** Of the engine's extents those that end one of the gate's blocks: each name stands for all text up to there. */
function hashesForGate(hashes: readonly string[]): readonly string[] {
  const ends = blockEnds(Math.floor(hashes.length / EXTENTS_PER_BLOCK))
  return ends.map((end) => hashes[end * EXTENTS_PER_BLOCK - 1] ?? '')
}

/** The offer of a request whose last body byte came at `receivedAtMs`: streamed chat unless it was told otherwise. */
export function toOffer(
  request: UnsentRequest,
  slo: SloClass,
  { pool, retryCount, hashes, countRatio, receivedAtMs }: Intake,
): Offer {
  const promptTokens = Math.max(1, Math.round(request.promptTokens * countRatio))
  return {
    requestId: request.id,
    pool,
    kind: 'generate',
    tenant: request.tenant ?? 'default',
    product: 'default',
    slo,
    route: request.className === 'autocomplete' ? 'completions' : 'chat',
    receivedAtMs,
    promptTokens,
    promptTokensExact: countRatio === 1,
    ...(request.maxTokens === undefined ? {} : { maxOutputTokens: request.maxTokens }),
    sequences: 1,
    prefixHashes: hashesForGate(hashes),
    prefixBlockTokens: Math.max(1, Math.round(FIRST_BLOCK_TOKENS * countRatio)),
    bodyBytes: request.promptTokens * BYTES_PER_TOKEN,
    streamed: true,
    retryCount,
    ...request.told,
  }
}

/** The same request for the engine, which alone knows how long its answer becomes. */
export function toEngineRequest(
  request: UnsentRequest,
  id: string,
  hashes: readonly string[],
): EngineRequest {
  const { promptTokens, outputTokens, priority, next, told } = request
  const sequences = told?.sequences ?? 1
  return {
    id,
    promptTokens,
    outputTokens: Array.from({ length: sequences }, () => Math.max(1, Math.round(outputTokens / sequences))),
    // Only a later turn can find the answer in the cache again.
    prefixHashes: next === undefined ? hashes : prefixHashes(request, promptTokens + outputTokens),
    prefixExtentTokens: EXTENT_TOKENS,
    ...(priority === undefined ? {} : { priority }),
  }
}
