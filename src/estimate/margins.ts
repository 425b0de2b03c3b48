/** How much of a target or a capacity plans and advice may use up; the rest covers what models do not see. */
import type { Ratio } from '../core/units.ts'

/** Part of each TPOT target: batches vary around their mean. */
export const TPOT_USE_RATIO: Ratio = 0.95
/** Part of a KV cache (decision notes, F3). */
export const KV_USE_RATIO: Ratio = 0.95
