/** Reads members of parsed JSON whose shape nobody has promised. */

export type JsonObject = { readonly [key: string]: unknown }

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Whether objects and lists lie in each other more than `levels` deep. */
export function isNestedDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false
  if (levels === 0) return true
  if (!Array.isArray(value)) return Object.values(value).some((member) => isNestedDeeper(member, levels - 1))
  for (const entry of value) if (isNestedDeeper(entry, levels - 1)) return true
  return false
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
