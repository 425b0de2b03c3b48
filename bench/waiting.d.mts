/** The types of `waiting.mjs`, for the tests in TypeScript. */

/** Looks every `everyMs` until `look` gives something true, and resolves to that; rejects after `limitMs`. */
export function eventually<T>(
  label: string,
  limitMs: number,
  look: () => T | Promise<T>,
  everyMs?: number,
): Promise<T>
