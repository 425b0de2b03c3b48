/** Finds the name that was probably meant. */

/**
 * Edits that turn `a` into `b`: insertions, deletions, replacements and swaps of neighbours, each counted as one
 * (optimal string alignment).
 */
function editDistance(a: string, b: string): number {
  let twoBack: number[] = []
  let previous = Array.from({ length: b.length + 1 }, (_, column) => column)
  for (let row = 1; row <= a.length; row++) {
    const current = [row]
    for (let column = 1; column <= b.length; column++) {
      const same = a[row - 1] === b[column - 1]
      const swapped = row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1]
      current[column] = Math.min(
        (previous[column] ?? 0) + 1,
        (current[column - 1] ?? 0) + 1,
        (previous[column - 1] ?? 0) + (same ? 0 : 1),
        swapped ? (twoBack[column - 2] ?? 0) + 1 : Number.POSITIVE_INFINITY,
      )
    }
    twoBack = previous
    previous = current
  }
  return previous[b.length] ?? 0
}

/** `maxWait`, `max-wait` and `MAX_WAIT` are one word spelt three ways. */
function plain(name: string): string {
  return name.replace(/[-_. ]/g, '').toLowerCase()
}

/** The known name nearest to `name`, or undefined when none is near enough to be a slip. */
export function nearest(name: string, known: Iterable<string>): string | undefined {
  if (name.length > 80) return undefined
  const word = plain(name)
  let best: string | undefined
  let bestDistance = Math.max(1, Math.floor(word.length / 3)) + 1
  for (const candidate of known) {
    const distance = editDistance(word, plain(candidate))
    if (distance < bestDistance) {
      best = candidate
      bestDistance = distance
    }
  }
  return best
}

/** Longer lists help nobody. */
const MOST_LISTED = 20

/** "did you mean X?" when a known name is near, else the list of what is known, else nothing. */
export function didYouMean(name: string, known: readonly string[]): string | undefined {
  const near = nearest(name, known)
  if (near !== undefined) return `did you mean ${near}?`
  if (known.length === 0) return undefined
  const listed = known.slice(0, MOST_LISTED).join(', ')
  return `known here: ${listed}${known.length > MOST_LISTED ? ', …' : ''}`
}
