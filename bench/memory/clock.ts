/** A clock that all processes of one machine share, in ms with fractions. */
export function sharedNowMs(): number {
  return performance.timeOrigin + performance.now()
}
