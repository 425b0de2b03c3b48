/** Finds the best setting of an arm: one axis after the other, over and over until none is better. */

/** Better by less than this is noise. */
const NOISE_RATIO = 0.002

/**
 * `scoreOf(setting)` resolves to what is to be large. Each axis is walked whole, so that a valley stops nobody; the
 * first of equal values stays. Resolves to the best setting, its score and all that was tried.
 */
export async function tune({ axes = {}, start = {} }, scoreOf, rounds = 2) {
  let best = { setting: start, score: await scoreOf(start) }
  const tried = [best]
  for (let round = 0; round < rounds; round++) {
    const before = best
    for (const [name, values] of Object.entries(axes)) {
      const around = best.setting
      const row = await Promise.all(
        values
          .filter((value) => value !== around[name])
          .map(async (value) => {
            const setting = { ...around, [name]: value }
            return { setting, score: await scoreOf(setting) }
          }),
      )
      tried.push(...row)
      for (const one of row) if (one.score > best.score + NOISE_RATIO) best = one
    }
    if (best === before) break
  }
  return { ...best, tried }
}
