/** The engine kinds that a replica may be, by the name used in the configuration. */
import type { EngineAdapter, EngineKind } from './adapter.ts'
import { llamacpp } from './llamacpp.ts'
import { openai } from './openai.ts'
import { sglang } from './sglang.ts'
import { tgi } from './tgi.ts'
import { vllm } from './vllm.ts'

const ADAPTERS = { vllm, sglang, tgi, llamacpp, openai } as const satisfies Record<EngineKind, EngineAdapter>

export const ENGINE_KINDS = Object.keys(ADAPTERS) as readonly EngineKind[]

/** The adapter of an engine kind. */
export function engineAdapter(kind: EngineKind): EngineAdapter {
  return ADAPTERS[kind]
}
