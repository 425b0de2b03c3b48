/** Turns what zod found into problems that say what to do. */
import type { z } from 'zod'
import { keyRows, keysAt } from './json-schema.ts'
import type { Path } from './problem.ts'
import { didYouMean, nearest } from './suggest.ts'
import { shown } from './units.ts'

/** A problem before it has a place. */
export interface Finding {
  readonly path: Path
  readonly at: 'key' | 'value'
  readonly message: string
  readonly suggestion?: string | undefined
}

type Issue = z.core.$ZodIssue

/** The plain value at a path, or undefined. */
export function valueAt(root: unknown, path: Path): unknown {
  let value = root
  for (const step of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, step)) return undefined
    value = (value as Record<string | number, unknown>)[step]
  }
  return value
}

/** Explains one issue; `root` is what was parsed, `base` the path at which the issue's own path starts. */
export function explain(issue: Issue, root: unknown, base: Path = []): readonly Finding[] {
  const path = [...base, ...(issue.path as Path)]
  if (issue.code === 'unrecognized_keys') return issue.keys.map((key) => unknownKey(path, key))
  if (issue.code === 'invalid_key') {
    const inner = issue.issues[0]
    return inner === undefined ? [] : [{ ...sayIssue(inner), path, at: 'key' }]
  }
  const value = valueAt(root, path)
  if (value === undefined) return [missing(path)]
  if (value === null) {
    const what = typeof path.at(-1) === 'number' ? 'entry' : 'key'
    const suggestion = `give it one, or remove the ${what}`
    return [{ path, at: 'key', message: `this ${what} has no value`, suggestion }]
  }
  if (issue.code === 'invalid_union')
    return branchOf(issue.errors).flatMap((inner) => explain(inner, root, path))
  return [{ ...sayIssue(issue), path, at: 'value' }]
}

/** The alternative that the value was meant for: the one whose outermost shape fits, else the one with a message. */
export function branchOf(branches: readonly (readonly Issue[])[]): readonly Issue[] {
  const fits = (issue: Issue) =>
    issue.path.length > 0 || (issue.code !== 'custom' && issue.code !== 'invalid_type')
  return (
    branches.find((issues) => issues.every(fits)) ??
    branches.find((issues) => issues.some((issue) => issue.code === 'custom')) ??
    branches[0] ??
    []
  )
}

function missing(path: Path): Finding {
  const name = String(path.at(-1) ?? 'the file')
  return { path: path.slice(0, -1), at: 'value', message: `${name} is missing`, suggestion: `add ${name}` }
}

function unknownKey(parent: Path, key: string): Finding {
  const message = `unknown key ${shown(key)}`
  const known = keysAt(parent)
  const finding = { path: [...parent, key], at: 'key' as const, message }
  if (nearest(key, known) !== undefined) return { ...finding, suggestion: didYouMean(key, known) }
  const home = keyRows().find((row) => row.path === key || row.path.endsWith(`.${key}`))
  if (home !== undefined) return { ...finding, suggestion: `it belongs to ${home.path}` }
  return { ...finding, suggestion: didYouMean(key, known) }
}

function sayIssue(issue: Issue): { message: string; suggestion?: string | undefined } {
  switch (issue.code) {
    case 'custom':
      return { message: issue.message, suggestion: issue.params?.suggestion as string | undefined }
    case 'too_small':
      return { message: 'this list is empty', suggestion: 'give it an entry, or remove the key' }
    case 'invalid_type':
      return issue.expected === 'array'
        ? { message: 'this must be a list', suggestion: 'put it into [ ] or start each line with -' }
        : { message: 'this must be a mapping', suggestion: 'write key: value, or { key: value }' }
    default:
      return { message: issue.message }
  }
}
