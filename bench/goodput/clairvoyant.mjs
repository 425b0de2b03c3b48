/** An estimator that knows each answer's length and starts with the engine's true step costs: what ours can't know. */
import { priorOf } from '../../dist/cli/gate-parts.js'
import { Learnt } from '../../dist/policies/learnt.js'

/** How sure it is of the profile, which is the truth up to the form of the step model. */
const UNCERTAINTY_RATIO = 0.05

export class Clairvoyant extends Learnt {
  #outputTokens

  constructor(profileId, requests) {
    super({ [profileId]: { ...priorOf(profileId), uncertaintyRatio: UNCERTAINTY_RATIO } })
    this.#outputTokens = new Map(requests.map(({ id, outputTokens }) => [id, outputTokens]))
  }

  trust() {
    return 'trusted'
  }

  remaining(offer, soFar) {
    return Math.max(1, (this.#outputTokens.get(offer.requestId) ?? 1) - soFar)
  }
}
