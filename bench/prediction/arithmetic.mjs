/** Sorted lists and least squares. */

export function sortedInsert(sorted, value) {
  let low = 0
  let high = sorted.length
  while (low < high) {
    const middle = (low + high) >> 1
    if (sorted[middle] < value) low = middle + 1
    else high = middle
  }
  sorted.splice(low, 0, value)
}

/** Coefficients that minimise the sum of squared relative errors. */
export function leastSquares(rows, values) {
  const width = rows[0].length
  const system = Array.from({ length: width }, () => new Array(width + 1).fill(0))
  rows.forEach((terms, index) => {
    const weight = 1 / values[index] ** 2
    for (let i = 0; i < width; i++) {
      for (let j = 0; j < width; j++) system[i][j] += weight * terms[i] * terms[j]
      system[i][width] += weight * terms[i] * values[index]
    }
  })
  // A term that never varies gets no weight.
  for (let i = 0; i < width; i++) system[i][i] += 1e-12
  return solve(system)
}

/** Gauss and Jordan, with pivots. */
function solve(system) {
  const width = system.length
  for (let i = 0; i < width; i++) {
    const pivot = system.reduce(
      (best, row, at) => (at >= i && Math.abs(row[i]) > Math.abs(system[best][i]) ? at : best),
      i,
    )
    const held = system[i]
    system[i] = system[pivot]
    system[pivot] = held
    for (let j = 0; j < width; j++) {
      if (j === i) continue
      const times = system[j][i] / system[i][i]
      for (let k = i; k <= width; k++) system[j][k] -= times * system[i][k]
    }
  }
  return system.map((row, i) => row[width] / row[i])
}
