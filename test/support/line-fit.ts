/** A straight line through samples by least squares, and how sure its slope is. */

export interface LineFit {
  /** Rise per unit of x. */
  readonly slope: number
  /** Standard error of the slope, in the same unit. */
  readonly slopeError: number
}

/** Needs three samples or more at different x. */
export function fitLine(xs: readonly number[], ys: readonly number[]): LineFit {
  if (xs.length < 3 || xs.length !== ys.length)
    throw new RangeError('a line is fitted to three pairs or more')
  const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length
  const [middleX, middleY] = [mean(xs), mean(ys)]
  let [spread, product] = [0, 0]
  xs.forEach((x, at) => {
    spread += (x - middleX) ** 2
    product += (x - middleX) * ((ys[at] ?? 0) - middleY)
  })
  if (spread === 0) throw new RangeError('all samples stand at one x')
  const slope = product / spread
  const residual = xs.reduce((sum, x, at) => {
    return sum + ((ys[at] ?? 0) - middleY - slope * (x - middleX)) ** 2
  }, 0)
  return { slope, slopeError: Math.sqrt(residual / (xs.length - 2) / spread) }
}
