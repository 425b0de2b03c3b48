/** The engine model's own record of one sequence. */
import type { Ms, Tokens } from '../core/units.ts'
import type { EngineRequest, SequenceView } from './engine-types.ts'
import { BlockTable } from './kv-cache.ts'

export class Sequence implements SequenceView {
  readonly request: EngineRequest
  readonly siblings: Sequence[]
  readonly index: number
  readonly outputTokens: Tokens
  readonly submittedAtMs: Ms
  /** Rises with each submitted sequence: arrival order without ties. */
  readonly order: number
  readonly table = new BlockTable()
  state: 'waiting' | 'running' | 'ended' = 'waiting'
  /** Tokens whose keys and values are in the cache. */
  computedTokens: Tokens = 0
  generatedTokens: Tokens = 0
  emittedTokens: Tokens = 0
  /** Tokens it computes in the step under way. */
  scheduledTokens: Tokens = 0
  cachedTokens: Tokens = 0
  scheduledAtMs: Ms | undefined
  firstTokenAtMs: Ms | undefined
  preemptions = 0
  engineMs: Ms

  constructor(request: EngineRequest, siblings: Sequence[], order: number, submittedAtMs: Ms) {
    this.request = request
    this.siblings = siblings
    this.index = siblings.length
    this.outputTokens = request.outputTokens[this.index] ?? 1
    this.order = order
    this.submittedAtMs = submittedAtMs
    this.engineMs = request.remotePrefill?.engineMs ?? 0
  }

  get requestId(): string {
    return this.request.id
  }
  get promptTokens(): Tokens {
    return this.request.promptTokens
  }
  get priority(): number {
    return this.request.priority ?? 0
  }
  /** Tokens still to be computed before it can generate the next one. */
  get pendingTokens(): Tokens {
    return this.request.promptTokens + this.generatedTokens - this.computedTokens
  }
  /** Prompt tokens whose KV another engine has sent; what was thrown back must be computed here. */
  get remoteTokens(): Tokens {
    return this.request.remotePrefill === undefined || this.preemptions > 0
      ? 0
      : this.request.promptTokens - 1
  }
  /** True when its next step is one token of decode rather than (re)computing a prompt. */
  get decodes(): boolean {
    return this.generatedTokens > 0 && this.pendingTokens === 1
  }
  get unfinishedSiblings(): number {
    let unfinished = 0
    for (const sibling of this.siblings) if (sibling.state !== 'ended') unfinished++
    return unfinished
  }
}
