/** Bounds and best schedules in hindsight of the cells of a scenario. */
import { packBits, unpackBits } from './bits.mjs'
import { costsOf } from './bounds-of-run.mjs'
import { runSpec, testSeeds } from './grid.mjs'
import { cheapestWithin, searchSchedule } from './hindsight.mjs'

/** Part of the fleet's time that the costs of one start may fill; they leave out what all requests share. */
const FILLED_RATIO = 0.8

/** The certified bound of each load and seed: `{ load, seed, prompts, all, bound }`. */
export function boundsOf(pool, opened, { loads, seeds }) {
  return eachCell(loads, seeds, async (load, seed) => pool.run('bound', runSpec(opened, load, seed)))
}

/** The best schedule found for each load and seed: `{ load, seed, attained, starts, moves, base }`. */
export function schedulesOf(pool, opened, tuned, { loads, seeds, replays }) {
  return eachCell(loads, seeds, (load, seed) => bestSchedule(pool, opened, tuned, { load, seed, replays }))
}

function eachCell(loads, seeds, ask) {
  const cells = loads.flatMap((load) => testSeeds(seeds).map((seed) => ({ load, seed })))
  return Promise.all(cells.map(async ({ load, seed }) => ({ load, seed, ...(await ask(load, seed)) })))
}

async function bestSchedule(pool, opened, tuned, { load, seed, replays }) {
  const spec = runSpec(opened, load, seed)
  const { judged, costs } = costsOf(spec)
  const nobody = judged.map(() => false)
  const cheap = cheapestWithin(judged, costs, FILLED_RATIO * opened.scenario.replicas * spec.durationMs)
  const knowing = { arm: 'clairvoyant', setting: {} }
  const undropping = { arm: 'clairvoyant', setting: { without: ['dropping'] } }
  const found = await searchSchedule({
    judged,
    costs,
    starts: [
      { base: knowing, excluded: nobody },
      { base: knowing, excluded: cheap },
      { base: undropping, excluded: cheap },
      ...guarded(tuned).flatMap((base) => [
        { base, excluded: nobody },
        { base, excluded: cheap },
      ]),
    ],
    budget: replays,
    replay: async ({ arm, setting }, excluded) => {
      const { good, bits } = await pool.run('replay', { ...spec, arm, setting, excluded: packBits(excluded) })
      return { good, flags: unpackBits(bits, judged.length) }
    },
  })
  const count = judged.filter(Boolean).length
  const { good, starts, moves, base } = found
  return { attained: count === 0 ? 1 : good / count, starts, moves, base: base.arm }
}

/** The strongest rival, where it was tuned: it is slow to replay. */
function guarded({ scorpio }) {
  return scorpio === undefined ? [] : [{ arm: 'scorpio', setting: scorpio.setting }]
}
