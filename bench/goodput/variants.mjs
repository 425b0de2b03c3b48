/** Variants of ours, and rivals that share its estimator: told the profile, knowing the truth, or without a part. */
import { priorOf } from '../../dist/cli/gate-parts.js'
import { Learnt } from '../../dist/policies/learnt.js'
import { ABLATIONS } from '../../dist/policies/parts.js'
import { createScorpio } from '../../dist/policies/rivals/scorpio.js'
import { createSluice } from '../../dist/policies/sluice.js'
import { biasedPrior } from '../../dist/sim/faults.js'

/** How sure the clairvoyant is of the profile, which is the truth up to the form of the step model. */
const UNCERTAINTY_RATIO = 0.05

/** What the profile says, off by what the scenario's faults say. */
const priorsOf = ({ profile, faults = [] }) => ({ [profile]: biasedPrior(priorOf(profile), faults) })

export const primedSluice = (scenario) => createSluice({ priors: priorsOf(scenario) })
export const primedScorpio = (setting, scenario) => createScorpio({ ...setting, priors: priorsOf(scenario) })

export const ablated = (name) => createSluice({ without: ABLATIONS[name] })

/** Ours with an estimator that knows. */
export const clairvoyant = (scenario, requests, without = []) =>
  createSluice({ learnt: new Clairvoyant(scenario.profile, requests), without })

/** Knows each answer's length, and starts with the engine's true step costs. */
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
