/** What the checks of a configuration want to know of GPU profiles. */
import type { ProfileFacts } from '../config/checks.ts'
import { profile, profileIds } from '../sim/profiles.ts'
import { idlePrefillMs, stepMs } from '../sim/step-time.ts'

const ids = profileIds()

/** A step that decodes one sequence of hardly any context. */
const LONE_DECODE = { prefillTokens: 0, prefillContextTokens: 0, decodeSequences: 1, decodeContextTokens: 0 }

/**
 * The floor of TTFT is the prefill of an idle replica with what a request costs outside of steps, that of TPOT a decode
 * step with one stream; no queue, no batch.
 */
export const PROFILE_FACTS: ProfileFacts = {
  ids,
  floorTtftMs(profileId, promptTokens) {
    if (!ids.includes(profileId)) return undefined
    const known = profile(profileId)
    return known.requestOverheadMs + idlePrefillMs(known, promptTokens, known.defaults.maxNumBatchedTokens)
  },
  floorTpotMs: (profileId) => (ids.includes(profileId) ? stepMs(profile(profileId), LONE_DECODE) : undefined),
}
