/** The names that a file declares, read from its plain values so that a broken entry still counts as declared. */
import { BEST_EFFORT, BUILTIN_CLASSES } from './builtin-classes.ts'
import { valueAt } from './explain.ts'
import type { Path } from './problem.ts'

export interface DeclaredNames {
  /** Each name that clients can ask for (name, alias or adapter) → the model's configured name. */
  readonly models: ReadonlyMap<string, string>
  /** Adapter → the model that it belongs to. */
  readonly adapters: ReadonlyMap<string, string>
  /** Every second use of such a name. */
  readonly clashes: readonly { readonly path: Path; readonly name: string; readonly takenBy: string }[]
  readonly classes: readonly string[]
  /** Classes that stand in the file itself. */
  readonly ownClasses: readonly string[]
  readonly tenants: readonly string[]
}

const listAt = (root: unknown, path: Path): readonly unknown[] => {
  const value = valueAt(root, path)
  return Array.isArray(value) ? value : []
}

export function declaredNames(root: unknown): DeclaredNames {
  const models = new Map<string, string>()
  const adapters = new Map<string, string>()
  const clashes: { path: Path; name: string; takenBy: string }[] = []
  for (const position of listAt(root, ['models']).keys()) {
    const at: Path = ['models', position]
    const canonical = valueAt(root, [...at, 'name'])
    if (typeof canonical !== 'string') continue
    for (const { path, name } of namesOfModel(root, at)) {
      const takenBy = models.get(name)
      if (path[2] === 'adapters') adapters.set(name, canonical)
      if (takenBy === undefined) models.set(name, canonical)
      else clashes.push({ path, name, takenBy })
    }
  }
  const classes = valueAt(root, ['classes'])
  const ownClasses = typeof classes === 'object' && classes !== null ? Object.keys(classes) : []
  const allClasses =
    classes === undefined ? Object.keys(BUILTIN_CLASSES) : [...new Set([...ownClasses, BEST_EFFORT])]
  const tenants = listAt(root, ['tenants']).map((tenant) => valueAt(tenant, ['name']))
  return {
    models,
    adapters,
    clashes,
    classes: allClasses,
    ownClasses,
    tenants: tenants.filter((name) => typeof name === 'string'),
  }
}

function namesOfModel(root: unknown, at: Path): readonly { path: Path; name: string }[] {
  const paths: Path[] = [[...at, 'name']]
  for (const key of ['aliases', 'adapters']) {
    for (const position of listAt(root, [...at, key]).keys()) paths.push([...at, key, position])
  }
  return paths.flatMap((path) => {
    const name = valueAt(root, path)
    return typeof name === 'string' ? [{ path, name }] : []
  })
}
