/** Turns a workload's request into what the gate sees and what the engine computes. */
import type { Offer, PoolId, SloClass } from '../core/request.ts'
import type { Ms, Tokens } from '../core/units.ts'
import type { EngineRequest } from './engine-types.ts'
import type { WorkloadRequest } from './workload-types.ts'

/** Tokens under one prefix hash, towards gate and engine alike. */
export const PREFIX_BLOCK_TOKENS: Tokens = 64

/** Bytes of JSON body per prompt token, for the waiting room's books. */
const BYTES_PER_TOKEN = 4

/** Hashes of the prompt's whole blocks: common ones for the shared part, the request's own for the rest. */
export function prefixHashes(request: WorkloadRequest): readonly string[] {
  const sharedBlocks = Math.floor((request.shared?.tokens ?? 0) / PREFIX_BLOCK_TOKENS)
  const hashes: string[] = []
  for (let block = 0; block < Math.floor(request.promptTokens / PREFIX_BLOCK_TOKENS); block++) {
    hashes.push(`${block < sharedBlocks ? request.shared?.key : request.id}/${block}`)
  }
  return hashes
}

/** The offer of a streamed chat request whose last body byte came at `receivedAtMs`. */
export function toOffer(
  request: WorkloadRequest,
  slo: SloClass,
  estimate: { readonly pool: PoolId; readonly promptTokens: Tokens; readonly hashes: readonly string[] },
  receivedAtMs: Ms,
): Offer {
  return {
    requestId: request.id,
    pool: estimate.pool,
    kind: 'generate',
    tenant: 'default',
    product: 'default',
    slo,
    route: request.className === 'autocomplete' ? 'completions' : 'chat',
    receivedAtMs,
    promptTokens: estimate.promptTokens,
    promptTokensExact: estimate.promptTokens === request.promptTokens,
    maxOutputTokens: request.maxTokens,
    sequences: 1,
    prefixHashes: estimate.hashes,
    prefixBlockTokens: PREFIX_BLOCK_TOKENS,
    bodyBytes: request.promptTokens * BYTES_PER_TOKEN,
    streamed: true,
    retryCount: 0,
  }
}

/** The same request for the engine, which alone knows how long its answer becomes. */
export function toEngineRequest(
  request: WorkloadRequest,
  id: string,
  hashes: readonly string[],
): EngineRequest {
  return {
    id,
    promptTokens: request.promptTokens,
    outputTokens: [request.outputTokens],
    prefixHashes: hashes,
    prefixExtentTokens: PREFIX_BLOCK_TOKENS,
  }
}
