/** Cuts what is wrong out of a copy of the file, so that the rest can still be checked and all problems told at once. */
import type { z } from 'zod'
import { branchOf, explain, type Finding, valueAt } from './explain.ts'
import type { Path } from './problem.ts'
import { type ConfigFile, fileSchema, lenientSchema } from './schema.ts'

export interface ShapeResult {
  /** What could be read: the whole file, or what is left of it without its wrong parts. */
  readonly file?: ConfigFile
  readonly findings: readonly Finding[]
  /** The path in the file as written, for a path in `file`. */
  original(path: Path): Path
}

/** Each round cuts at least one piece; a file has no more rounds in it than it has depth. */
const MAX_ROUNDS = 12

/** Checks the shape and reads what is readable. */
export function readShape(root: unknown): ShapeResult {
  const parsed = fileSchema.safeParse(root)
  if (parsed.success) return { file: parsed.data, findings: [], original: (path) => path }
  const findings = parsed.error.issues.flatMap((issue) => explain(issue, root))
  if (typeof root !== 'object' || root === null || Array.isArray(root)) {
    return { findings, original: (path) => path }
  }
  const pruned = new PrunedTree(root)
  let issues: readonly z.core.$ZodIssue[] = parsed.error.issues
  for (let round = 0; round < MAX_ROUNDS; round++) {
    pruned.cut(issues)
    const again = lenientSchema.safeParse(pruned.root)
    if (again.success) return { file: again.data, findings, original: (path) => pruned.original(path) }
    issues = again.error.issues
  }
  return { findings, original: (path) => path }
}

/** A copy of the tree that knows, for each list it shortened, which entries are left. */
class PrunedTree {
  readonly root: unknown
  #kept = new WeakMap<readonly unknown[], number[]>()

  constructor(root: unknown) {
    this.root = structuredClone(root)
  }

  cut(issues: readonly z.core.$ZodIssue[]): void {
    // All targets are found in the tree as it is, before the first cut moves anything.
    const targets = issues.flatMap((issue) => wrongPaths(issue, [])).map((path) => this.#existing(path))
    const distinct = new Map(targets.map((target) => [JSON.stringify(target), target]))
    for (const target of [...distinct.values()].sort(lastFirst)) {
      if (target.length > 0) this.#remove(target)
    }
  }

  /** The path itself, or the nearest thing around it that exists: what lacks a required key goes as a whole. */
  #existing(path: Path): Path {
    let target = path
    while (target.length > 0 && valueAt(this.root, target) === undefined) target = target.slice(0, -1)
    return target
  }

  #remove(path: Path): void {
    const parent = valueAt(this.root, path.slice(0, -1))
    const last = path.at(-1) as string | number
    if (Array.isArray(parent)) {
      const kept = this.#kept.get(parent) ?? [...parent.keys()]
      parent.splice(Number(last), 1)
      kept.splice(Number(last), 1)
      this.#kept.set(parent, kept)
    } else delete (parent as Record<string, unknown>)[last]
  }

  original(path: Path): Path {
    let value = this.root
    return path.map((step) => {
      const list = Array.isArray(value) ? value : undefined
      value = valueAt(value, [step])
      return list === undefined ? step : (this.#kept.get(list)?.[Number(step)] ?? step)
    })
  }
}

function wrongPaths(issue: z.core.$ZodIssue, base: Path): readonly Path[] {
  const path = [...base, ...(issue.path as Path)]
  if (issue.code === 'unrecognized_keys') return issue.keys.map((key) => [...path, key])
  if (issue.code === 'invalid_union')
    return branchOf(issue.errors).flatMap((inner) => wrongPaths(inner, path))
  return [path]
}

/** Later list entries before earlier ones, so that cutting one does not move the next. */
function lastFirst(a: Path, b: Path): number {
  for (let depth = 0; depth < Math.min(a.length, b.length); depth++) {
    const [one, two] = [a[depth], b[depth]]
    if (typeof one === 'number' && typeof two === 'number' && one !== two) return two - one
    if (one !== two) return String(one) < String(two) ? -1 : 1
  }
  return b.length - a.length
}
