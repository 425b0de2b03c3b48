/** What must stay flat over a soak, and what the samples of it say: slopes, their doubt, and the verdict. */
import { fitLine } from '../support/line-fit.ts'
import type { Holdings } from '../support/node-child.ts'

export interface Sample {
  readonly requests: number
  readonly holdings: Holdings
}

interface Figure {
  readonly name: string
  readonly unit: 'bytes' | 'count'
  readonly of: (holdings: Holdings) => number
  /** Rise per 1000 requests that counts as a leak. */
  readonly limit: number
}

/**
 * The least that can be left of a request is a closure or an entry of a map, some 64 bytes: 64 000 bytes per 1000
 * requests. The limit of the heap is a thirtieth of that, so what leaks with one request in thirty shows. The process
 * as a whole is given eight times as much, since allocators round up and give back late: 16 MB over a million requests.
 * Of things that are counted, one per thousand requests is a leak.
 */
const FIGURES: readonly Figure[] = [
  { name: 'heap', unit: 'bytes', of: ({ heapBytes }) => heapBytes, limit: 2000 },
  { name: 'external', unit: 'bytes', of: ({ externalBytes }) => externalBytes, limit: 2000 },
  { name: 'resident', unit: 'bytes', of: ({ rssBytes }) => rssBytes, limit: 16_000 },
  { name: 'handles', unit: 'count', of: handlesOf, limit: 1 },
  { name: 'timers', unit: 'count', of: ({ timers }) => timers, limit: 1 },
  { name: 'listeners', unit: 'count', of: ({ listeners }) => listeners, limit: 1 },
  { name: 'entries of maps', unit: 'count', of: ({ mapEntries }) => mapEntries, limit: 1 },
  { name: 'entries of sets', unit: 'count', of: ({ setEntries }) => setEntries, limit: 1 },
]

export interface Verdict {
  readonly name: string
  readonly unit: Figure['unit']
  readonly first: number
  readonly last: number
  /** Per 1000 requests. */
  readonly rise: number
  readonly riseError: number
  readonly limit: number
  /** `leak`: surely above the limit. `unsure`: too few requests to tell. */
  readonly verdict: 'flat' | 'leak' | 'unsure'
}

/** Fits a line to each figure over the samples after the warm-up. */
export function verdictsOf(samples: readonly Sample[]): readonly Verdict[] {
  const xs = samples.map(({ requests }) => requests / 1000)
  return FIGURES.map(({ name, unit, of, limit }) => {
    const ys = samples.map(({ holdings }) => of(holdings))
    const { slope: rise, slopeError: riseError } = fitLine(xs, ys)
    const verdict = rise - 2 * riseError > limit ? 'leak' : rise + 2 * riseError > limit ? 'unsure' : 'flat'
    return { name, unit, first: ys[0] ?? 0, last: ys.at(-1) ?? 0, rise, riseError, limit, verdict }
  })
}

/** What a soak says at its end, and its exit code: 0 when all is flat, 1 at a leak, 2 when it was too short to tell. */
export function conclusionOf(verdicts: readonly Pick<Verdict, 'name' | 'verdict'>[]): {
  readonly line: string
  readonly exitCode: 0 | 1 | 2
} {
  const named = (wanted: Verdict['verdict']) =>
    verdicts.flatMap(({ name, verdict }) => (verdict === wanted ? [name] : []))
  const [leaks, unsure] = [named('leak'), named('unsure')]
  if (leaks.length > 0) return { line: `leaks: ${leaks.join(', ')}`, exitCode: 1 }
  if (unsure.length === 0) return { line: 'nothing leaks', exitCode: 0 }
  const line = `too short to tell whether this leaks: ${unsure.join(', ')}; give it more --requests`
  return { line, exitCode: 2 }
}

function handlesOf({ handles }: Holdings): number {
  return Object.values(handles).reduce((sum, count) => sum + count, 0)
}
