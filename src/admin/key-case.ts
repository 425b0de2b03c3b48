/** Names the fields of plain values as the admin port does, in snake_case, and back as code has them. */

/** For values whose keys are all names of fields: models, tenants and classes are values, or they would be renamed. */
export function snakeCased(value: unknown): unknown {
  return renamed(value, snake)
}

/** The inverse, for what has come over the wire. */
export function camelCased(value: unknown): unknown {
  return renamed(value, camel)
}

type Rename = (key: string) => string

/** Numbers stay with the word before them (`p99_ms`), but for the `1k` of `per_1k_tokens`. */
const snake: Rename = (key) => key.replace(/[A-Z]|1k/g, (part) => `_${part.toLowerCase()}`)
const camel: Rename = (key) => key.replace(/_([a-z\d])/g, (_, first: string) => first.toUpperCase())

function renamed(value: unknown, rename: Rename): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map((item) => renamed(item, rename))
  const fields = Object.entries(value).map(([key, inner]) => [rename(key), renamed(inner, rename)] as const)
  return Object.fromEntries(fields)
}
