/** The JSON Schema of the file, and what docs and messages read out of it: which keys exist, and what they mean. */
import { z } from 'zod'
import type { Path } from './problem.ts'
import { fileSchema } from './schema.ts'

export interface JsonSchema {
  readonly title?: string
  readonly type?: string | readonly string[]
  readonly description?: string
  readonly default?: unknown
  readonly properties?: Readonly<Record<string, JsonSchema>>
  readonly additionalProperties?: JsonSchema | false
  readonly items?: JsonSchema
  readonly anyOf?: readonly JsonSchema[]
  readonly required?: readonly string[]
}

/** One key of the file for the table in docs. */
export interface KeyRow {
  /** With `[]` for lists and `<name>` for names of one's own. */
  readonly path: string
  readonly kind: string
  readonly required: boolean
  readonly defaultText?: string
  readonly description: string
}

let cached: JsonSchema | undefined
let cachedRows: readonly KeyRow[] | undefined

/** Draft 7, which editors know best. */
export function configJsonSchema(): JsonSchema {
  cached ??= {
    ...(z.toJSONSchema(fileSchema, { io: 'input', target: 'draft-7' }) as JsonSchema),
    title: 'Sluice configuration',
  }
  return cached
}

/** The mapping among the alternatives of a schema, or the schema itself. */
function mappingOf(schema: JsonSchema | undefined): JsonSchema | undefined {
  return schema?.anyOf?.find(({ properties }) => properties !== undefined) ?? schema
}

/** The keys that the mapping at that path may have; none when it takes names of one's own or is no mapping. */
export function keysAt(path: Path): readonly string[] {
  let schema = mappingOf(configJsonSchema())
  for (const step of path) {
    const own = typeof step === 'string' ? schema?.properties : undefined
    const next =
      typeof step === 'number' ? schema?.items : (own?.[step] ?? (schema?.additionalProperties || undefined))
    schema = mappingOf(next)
  }
  return Object.keys(schema?.properties ?? {})
}

/** All keys, parents before children, in the order of the schema. */
export function keyRows(): readonly KeyRow[] {
  cachedRows ??= rowsOf(configJsonSchema(), '')
  return cachedRows
}

function rowsOf(schema: JsonSchema, prefix: string): readonly KeyRow[] {
  const mapping = mappingOf(schema)
  return Object.entries(mapping?.properties ?? {}).flatMap(([name, child]) => {
    const path = prefix === '' ? name : `${prefix}.${name}`
    const row: KeyRow = {
      path,
      kind: kindOf(child),
      required: mapping?.required?.includes(name) ?? false,
      ...(child.default !== undefined && { defaultText: defaultText(child.default) }),
      description: child.description ?? '',
    }
    return [row, ...childRows(child, path)]
  })
}

function childRows(schema: JsonSchema, path: string): readonly KeyRow[] {
  if (schema.items !== undefined) return rowsOf(schema.items, `${path}[]`)
  if (schema.additionalProperties) return rowsOf(schema.additionalProperties, `${path}.<name>`)
  return rowsOf(schema, path)
}

function kindOf(schema: JsonSchema): string {
  if (schema.title !== undefined) return schema.title
  if (schema.anyOf !== undefined) return schema.anyOf.map(kindOf).join(' | ')
  if (schema.items !== undefined) return `list of ${kindOf(schema.items)}`
  return schema.type === 'object' ? 'mapping' : String(schema.type)
}

function defaultText(value: unknown): string {
  if (Array.isArray(value) || typeof value !== 'object' || value === null)
    return JSON.stringify(value).replaceAll('"', '')
  return Object.keys(value).length === 0 ? '' : 'see below'
}
