/** Turns what a log taught of its engines into engines for the simulator. */
import type { EngineProfile } from '../sim/profiles.ts'
import type { EngineFit } from './engine-fit.ts'

/** Step costs as fitted; KV capacity and what the engine would choose for itself as `like` has them. */
export function fittedProfile(model: string, fit: EngineFit, like: EngineProfile): EngineProfile {
  return {
    ...like,
    id: `fitted/${model}`,
    decode: {
      baseMs: fit.baseMs,
      perSequenceMs: fit.perSequenceMs,
      perContextTokenMs: fit.perContextTokenMs,
    },
    prefill: {
      floorMs: fit.baseMs,
      baseMs: Math.max(0, fit.baseMs + fit.perChunkMs),
      perTokenMs: fit.perPrefillTokenMs,
      perTokenContextMs: fit.perPairMs,
    },
    stepOverheadMs: 0,
    requestOverheadMs: fit.requestOverheadMs,
  }
}
