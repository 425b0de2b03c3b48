/** Weighted least squares for a handful of parameters with floors, held near a first guess where nothing tells. */

export interface Observation {
  readonly x: readonly number[]
  readonly y: number
  /** Standard deviation of `y`, above 0. */
  readonly sigma: number
}

/** Residuals beyond so many deviations count less, in inverse proportion (Huber 1964, with his usual constant). */
const HUBER_SIGMAS = 1.345
const ROUNDS = 4

/**
 * The parameters that fit best. Each is pulled towards `guess` as one observation of it with deviation `guessSigma`
 * would; a parameter that would come out below its floor (`floors`, default 0) is held there and the others are fitted
 * anew.
 */
export function fitParameters(
  observations: readonly Observation[],
  guess: readonly number[],
  guessSigma: readonly number[],
  floors: readonly number[] = guess.map(() => 0),
): readonly number[] {
  let found = [...guess]
  for (let round = 0; round < ROUNDS; round++) {
    const equations = normalEquations(
      observations,
      found,
      round === 0 ? Number.POSITIVE_INFINITY : HUBER_SIGMAS,
    )
    guess.forEach((value, at) => {
      const precision = 1 / (guessSigma[at] ?? 1) ** 2
      equations.left[at * guess.length + at] = number(equations.left, at * guess.length + at) + precision
      equations.right[at] = number(equations.right, at) + precision * value
    })
    found = solveAbove(equations, floors)
  }
  return found
}

interface Equations {
  readonly left: number[]
  readonly right: number[]
}

function normalEquations(
  observations: readonly Observation[],
  around: readonly number[],
  huberSigmas: number,
): Equations {
  const n = around.length
  const left = new Array<number>(n * n).fill(0)
  const right = new Array<number>(n).fill(0)
  for (const { x, y, sigma } of observations) {
    const off = Math.abs(y - dot(around, x)) / sigma
    const weight = (off > huberSigmas ? huberSigmas / off : 1) / (sigma * sigma)
    for (let row = 0; row < n; row++) {
      const scaled = weight * number(x, row)
      if (scaled === 0) continue
      right[row] = number(right, row) + scaled * y
      for (let column = 0; column < n; column++)
        left[row * n + column] = number(left, row * n + column) + scaled * number(x, column)
    }
  }
  return { left, right }
}

/** Solves with every parameter at or above its floor: those below are held there, one after the other, the worst first. */
function solveAbove({ left, right }: Equations, floors: readonly number[]): number[] {
  const n = right.length
  const held = new Set<number>()
  for (;;) {
    const free = floors.map((_, at) => at).filter((at) => !held.has(at))
    const solved = solve(
      free.map((row) => free.map((column) => number(left, row * n + column))),
      free.map((row) => {
        let value = number(right, row)
        for (const at of held) value -= number(left, row * n + at) * number(floors, at)
        return value
      }),
    )
    const found = [...floors]
    free.forEach((at, index) => {
      found[at] = solved[index] ?? number(floors, at)
    })
    const below = free.filter((at) => number(found, at) < number(floors, at))
    if (below.length === 0) return found
    held.add(below.reduce((worst, at) => (number(found, at) < number(found, worst) ? at : worst)))
  }
}

/** Gauss with pivots; the pull to the guess keeps the matrix regular. */
function solve(matrix: number[][], right: number[]): number[] {
  const n = right.length
  const rows = matrix.map((row, at) => [...row, right[at] ?? 0])
  for (let at = 0; at < n; at++) {
    const pivot = rows.reduce(
      (best, row, index) =>
        index >= at && Math.abs(number(row, at)) > Math.abs(number(rows[best] ?? [], at)) ? index : best,
      at,
    )
    const [upper, chosen] = [rows[at] ?? [], rows[pivot] ?? []]
    rows[pivot] = upper
    rows[at] = chosen
    for (const row of rows.slice(at + 1)) {
      const factor = number(row, at) / number(chosen, at)
      for (let column = at; column <= n; column++)
        row[column] = number(row, column) - factor * number(chosen, column)
    }
  }
  const found = new Array<number>(n).fill(0)
  for (let at = n - 1; at >= 0; at--) {
    const row = rows[at] ?? []
    let value = number(row, n)
    for (let column = at + 1; column < n; column++) value -= number(row, column) * number(found, column)
    found[at] = value / number(row, at)
  }
  return found
}

/** The value that the parameters give at `x`. */
export function dot(parameters: readonly number[], x: readonly number[]): number {
  let sum = 0
  for (let at = 0; at < x.length; at++) sum += number(parameters, at) * number(x, at)
  return sum
}

function number(values: readonly number[], at: number): number {
  return values[at] ?? 0
}
