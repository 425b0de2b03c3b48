/** Reads members of parsed JSON whose shape nobody has promised. */

export type JsonObject = { readonly [key: string]: unknown }

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The value when it is a finite number of at least `min`, else undefined. */
export function numberAtLeast(min: number, value: unknown): number | undefined {
  return typeof value === 'number' && Number.isFinite(value) && value >= min ? value : undefined
}

export function stringOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}

/** The elements of an array, else none. */
export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}
