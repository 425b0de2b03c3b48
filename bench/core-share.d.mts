/** The types of `core-share.mjs`, for benches in TypeScript. */

export interface CoreShare {
  /** Shares of one core, of the cheapest slice and in the middle. */
  readonly best: number
  readonly median: number
  /** Of all slices together. */
  readonly spanMs: number
  readonly userUs: number
  readonly systemUs: number
}

/** Lets so many slices of that length pass, and tells what this process has used meanwhile. */
export function coreShare(slices: number, sliceMs: number): Promise<CoreShare>
