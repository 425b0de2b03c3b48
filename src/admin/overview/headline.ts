/** Says in one sentence how it stands, for who reads nothing else. */
import type { Check } from '../readiness.ts'
import { listed, shownTimes } from '../words.ts'
import { type PromiseFigures, promiseName } from './promises.ts'

/** More names than this are counted. */
const NAMES_TOLD = 3

/** `failed`: the checks that make this Sluice unready. */
export function headline(promises: readonly PromiseFigures[], failed: readonly Check[]): string {
  const [check] = failed
  if (check !== undefined) return `Not ready: ${check.detail}.`
  const judged = promises.filter(({ objectiveRatio }) => objectiveRatio !== undefined)
  const critical = judged.filter(({ state }) => state === 'critical')
  if (critical.length > 0) return burning(critical, promises)
  const slow = judged.filter(({ state }) => state === 'burning')
  if (slow.length > 0) return burning(slow, promises)
  if (judged.some(({ state }) => state === 'ok')) return 'Every promise is being kept.'
  return 'Too few requests yet to judge a promise.'
}

/** Tells the burn of the window that shows first whether it is over. */
function burning(raised: readonly PromiseFigures[], all: readonly PromiseFigures[]): string {
  const names = raised.slice(0, NAMES_TOLD).map((one) => promiseName(one, all))
  const more = raised.length - names.length
  const who = listed([...names, ...(more > 0 ? [`${more} more`] : [])])
  const [first] = raised
  const burn = first?.burn['5m'] ?? first?.burn['1h']
  if (raised.length > 1) return `${who} are spending their error budgets too fast.`
  return burn === undefined || burn <= 1
    ? `${who} has spent its error budget too fast.`
    : `${who} is spending its error budget ${shownTimes(burn)} too fast.`
}
