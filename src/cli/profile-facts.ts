/** What the checks of a configuration want to know of GPU profiles. */
import type { ProfileFacts } from '../config/checks.ts'
import { profile, profileIds } from '../sim/profiles.ts'
import { idlePrefillMs } from '../sim/step-time.ts'

const ids = profileIds()

/** The floor is the prefill of an idle replica with what a request costs outside of steps; no queue, no batch. */
export const PROFILE_FACTS: ProfileFacts = {
  ids,
  floorTtftMs(profileId, promptTokens) {
    if (!ids.includes(profileId)) return undefined
    const known = profile(profileId)
    return known.requestOverheadMs + idlePrefillMs(known, promptTokens, known.defaults.maxNumBatchedTokens)
  },
}
