/** The parts of our scheduler that can be left out, to measure what each is worth. */
import type { GateName } from '../core/records.ts'

/** A gate by its name, or: the order by slack (deadlines alone are left), the dropping of what makes plans late. */
export type SluicePart = Exclude<GateName, 'state' | 'excluded'> | 'slack-order' | 'dropping'
