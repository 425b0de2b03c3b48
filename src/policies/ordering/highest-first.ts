/** Picks who is next among many that have no deadline: the highest claim, then the order given. */

/** At most `count` of the items, highest claim first; equal claims keep their order. Costs no sort of all items. */
export function highestFirst<T>(
  items: readonly T[],
  claim: (item: T) => number,
  count: number,
): readonly T[] {
  const byClaim = new Map<number, T[]>()
  for (const item of items) {
    const its = claim(item)
    const equals = byClaim.get(its)
    if (equals === undefined) byClaim.set(its, [item])
    else if (equals.length < count) equals.push(item)
  }
  const claims = [...byClaim.keys()].sort((a, b) => b - a)
  return claims.flatMap((its) => byClaim.get(its) ?? []).slice(0, count)
}
