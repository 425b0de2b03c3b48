/**
 * Looks for the best schedule in hindsight: which requests to refuse at once, so that as many of the others as possible
 * are good when the run is replayed without them by a scheduler that knows every answer's length. No optimum is
 * promised: it is the best that was found within a budget of replays. Deterministic.
 */

/** Of those that were refused or late, the dearest part of this size is given up; halved when that was too much. */
const GIVE_UP_RATIO = 0.5
/** Every third replay the cheapest part of those given up may come again; halved likewise. */
const TAKE_BACK_RATIO = 0.2
const TAKE_BACK_EVERY = 3

/**
 * `judged` and `costs` are by request; `starts` are `{ base, excluded }` with `excluded` by request; `replay(base,
 * excluded)` resolves to `{ good, flags }`, the count and which. Resolves to the best `{ good, base, excluded }` with the
 * numbers of starts and of moves after them that were replayed.
 */
export async function searchSchedule({ judged, costs, starts, replay, budget }) {
  const opening = starts.slice(0, Math.max(1, budget))
  const tried = await Promise.all(
    opening.map(async (start) => ({ ...start, ...(await replay(start.base, start.excluded)) })),
  )
  let best = tried.reduce((one, other) => (other.good > one.good ? other : one))
  const ratios = { giveUp: GIVE_UP_RATIO, takeBack: TAKE_BACK_RATIO }
  let replays = tried.length
  for (; replays < budget; replays++) {
    const moves = {
      giveUp: givenUp(best, judged, costs, ratios.giveUp),
      takeBack: takenBack(best, judged, costs, ratios.takeBack),
    }
    const wanted = replays % TAKE_BACK_EVERY === 0 ? 'takeBack' : 'giveUp'
    const move = moves[wanted] === undefined ? otherOf(wanted) : wanted
    const excluded = moves[move]
    if (excluded === undefined) break
    const next = { base: best.base, excluded, ...(await replay(best.base, excluded)) }
    if (next.good > best.good) best = next
    else ratios[move] /= 2
  }
  const { good, base, excluded } = best
  return { good, base, excluded, starts: tried.length, moves: replays - tried.length }
}

const otherOf = (move) => (move === 'giveUp' ? 'takeBack' : 'giveUp')

/** More excluded: the dearest of those that were let in for nothing. Undefined when there are none. */
function givenUp({ excluded, flags }, judged, costs, ratio) {
  const failed = indexesWhere(judged, (index) => judged[index] && !excluded[index] && !flags[index])
  if (failed.length === 0) return undefined
  failed.sort((a, b) => costs[b] - costs[a])
  return changed(excluded, failed.slice(0, Math.max(1, Math.round(failed.length * ratio))), true)
}

/** Fewer excluded: the cheapest ones may come again. Undefined when none is. */
function takenBack({ excluded }, judged, costs, ratio) {
  const out = indexesWhere(judged, (index) => judged[index] && excluded[index])
  if (out.length === 0) return undefined
  out.sort((a, b) => costs[a] - costs[b])
  return changed(excluded, out.slice(0, Math.max(1, Math.round(out.length * ratio))), false)
}

const indexesWhere = (list, holds) => [...list.keys()].filter(holds)

function changed(excluded, indexes, to) {
  const next = [...excluded]
  for (const index of indexes) next[index] = to
  return next
}

/** Excludes what nobody judges, and the dearest of the rest until their costs fit into that time. */
export function cheapestWithin(judged, costs, availableMs) {
  const excluded = judged.map((isJudged) => !isJudged)
  let spentMs = 0
  for (const index of indexesWhere(judged, (at) => judged[at]).sort((a, b) => costs[a] - costs[b])) {
    spentMs += costs[index]
    if (spentMs > availableMs) excluded[index] = true
  }
  return excluded
}
