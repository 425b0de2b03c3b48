/** How much is run: everything, which takes hours, or what fits into ten minutes on two cores. */

const PARTS = [
  'core',
  'everyone',
  'ablations',
  'factors',
  'traces',
  'robustness',
  'cold',
  'faults',
  'tenants',
  'untrusted',
]

/** All arms on the first two fleets of the core, every value of every axis tried twice. */
const EVERYONE = { scenarios: ['8B-A100-2048', '8B-H100'], tuningRounds: 2, tuningStride: 1 }

const CARRIES = { goodRatio: 0.9, highest: 4 }

export const PLANS = {
  full: {
    parts: PARTS,
    loads: [0.5, 0.8, 1, 1.5, 2, 2.5, 3],
    seeds: 5,
    training: [1, 1.5, 2.5],
    tuningRounds: 2,
    overallRounds: 1,
    duration: { requests: 6000, shortestMs: 90_000, longestMs: 180_000 },
    /** Ours with something changed, on the core grid. */
    variants: { loads: [1, 2] },
    carries: { ...CARRIES, halvings: 6, seeds: 2 },
    schedules: { loads: [1, 1.5, 2, 3], seeds: 2, replays: 14 },
    everyone: { ...EVERYONE, loads: [1, 1.5, 2, 3], seeds: 5 },
    ablations: { loads: [2], seeds: 5 },
    factors: { loads: [0.8, 1, 1.5, 2, 3], seeds: 3, tuningRounds: 1 },
    robust: { loads: [1, 1.5, 2], schedules: { seeds: 2, replays: 14 } },
    cold: { load: 2, watchedMs: 90_000, seeds: 5, arms: ['sluice', 'clairvoyant'] },
    faults: { load: 1.5, seeds: 5 },
    tenants: { load: 2, seeds: 5 },
    untrusted: { loads: [1, 1.5, 2], seeds: 5 },
  },
  quick: {
    parts: ['core', 'cold'],
    loads: [0.8, 1, 1.5, 2, 3],
    seeds: 3,
    training: [1, 2],
    tuningRounds: 1,
    /** Every second value of a long axis is tried. */
    tuningStride: 2,
    overallRounds: 0,
    duration: { requests: 1500, shortestMs: 36_000, longestMs: 60_000 },
    carries: { ...CARRIES, halvings: 4, seeds: 1 },
    /** Replays are those of a search's starts, 3 or with the guard 5, and of its moves. */
    schedules: { loads: [2, 3], seeds: 1, replays: 7 },
    everyone: { ...EVERYONE, loads: [1, 2], seeds: 5 },
    ablations: { loads: [2], seeds: 5 },
    factors: { loads: [1, 2], seeds: 3 },
    robust: { loads: [1, 2], schedules: { seeds: 1, replays: 5 } },
    cold: { load: 2, watchedMs: 36_000, seeds: 2, arms: ['sluice', 'clairvoyant'] },
    faults: { load: 1.5, seeds: 2 },
    tenants: { load: 2, seeds: 3 },
    untrusted: { loads: [1, 1.5, 2], seeds: 2 },
    /** The rivals that are set up in practice, and the strongest one. */
    rivals: ['limit', 'token-cap', 'llm-d', 'gradient2', 'lmetric-cap', 'scorpio'],
  },
}
