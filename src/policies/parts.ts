/** The parts of our scheduler that can be left out, to measure what each is worth. */
import type { GateName } from '../core/records.ts'

/**
 * A gate by its name, or: the order by slack (deadlines alone are left), the dropping of what makes plans late, the
 * price (nobody is refused before a plan gives him up), the shares of tenants, the floors of classes, the trust in
 * predictions (none of them ever sheds).
 */
export type SluicePart =
  | Exclude<GateName, 'state'>
  | 'slack-order'
  | 'dropping'
  | 'price'
  | 'shares'
  | 'floors'
  | 'trust'

/** Ours with parts left out, by name: what each is worth. */
export const ABLATIONS: Readonly<Record<string, readonly SluicePart[]>> = {
  'sluice-no-hold': ['depth', 'slots', 'steady', 'slack', 'kv'],
  'sluice-no-depth': ['depth'],
  'sluice-no-slack': ['slack'],
  'sluice-no-steady': ['steady'],
  'sluice-no-kv': ['kv'],
  'sluice-no-slots': ['slots'],
  'sluice-no-dropping': ['dropping'],
  'sluice-no-price': ['price'],
  'sluice-no-shares': ['shares'],
  'sluice-no-floors': ['floors'],
  'sluice-no-trust': ['trust'],
  'sluice-edf': ['slack-order', 'dropping'],
}
