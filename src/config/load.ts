/** From the text of the file to a checked Config, or to every problem in it at once. */
import { checkAccess } from './check-access.ts'
import { checkClasses } from './check-classes.ts'
import { checkLimits } from './check-limits.ts'
import { checkModels } from './check-models.ts'
import type { CheckContext, ProfileFacts } from './checks.ts'
import type { Config } from './config.ts'
import { type Filled, readTree, type SourceTree } from './document.ts'
import { valueAt } from './explain.ts'
import type { Environment } from './interpolate.ts'
import { declaredNames } from './names.ts'
import { formatPath, inFileOrder, type Path, type Problem } from './problem.ts'
import { resolveConfig } from './resolve.ts'
import { readShape } from './salvage.ts'
import { shown } from './units.ts'

export interface LoadOptions {
  /** Stands in every problem. */
  readonly fileName: string
  readonly env: Environment
  /** Without it profiles and their floors are not checked. */
  readonly profiles?: ProfileFacts
}

export type LoadResult =
  | { readonly ok: true; readonly config: Config; readonly warnings: readonly Problem[] }
  /** Warnings are among the problems. */
  | { readonly ok: false; readonly problems: readonly Problem[] }

/** Never throws for any text. No problem ever repeats a secret or what a variable held. */
export function loadConfig(text: string, options: LoadOptions): LoadResult {
  const tree = readTree(text, options.env)
  const problems: Problem[] = tree.faults.map(({ path, ...fault }) => ({
    severity: 'error',
    file: options.fileName,
    path: formatPath(path),
    ...fault,
  }))
  const finish = (config?: Config): LoadResult => {
    const told = inFileOrder(problems.map((problem) => withoutFilled(problem, tree.filled)))
    if (config === undefined || told.some(({ severity }) => severity === 'error'))
      return { ok: false, problems: told }
    return { ok: true, config, warnings: told }
  }
  if (tree.root === undefined) return finish()
  const report = reporter(tree, options.fileName, problems)
  if (tree.root === null) {
    report('error', [], 'the file is empty', 'run `sluice init` for one to start from')
    return finish()
  }
  const names = declaredNames(tree.root)
  const shape = readShape(tree.root)
  for (const { path, at, message, suggestion } of shape.findings)
    report('error', path, message, suggestion, at)
  if (shape.file === undefined) return finish()
  const context: CheckContext = {
    file: shape.file,
    names,
    profiles: options.profiles,
    written: (path) => valueAt(tree.root, shape.original(path)),
    error: (path, message, suggestion, at) => report('error', shape.original(path), message, suggestion, at),
    warn: (path, message, suggestion, at) => report('warning', shape.original(path), message, suggestion, at),
  }
  for (const check of [checkLimits, checkModels, checkClasses, checkAccess]) check(context)
  const sound = problems.every(({ severity }) => severity !== 'error')
  return finish(sound ? resolveConfig(shape.file, names) : undefined)
}

function reporter(tree: SourceTree, file: string, problems: Problem[]) {
  const unfilled = tree.faults
  return (
    severity: Problem['severity'],
    path: Path,
    message: string,
    suggestion?: string,
    at?: 'key' | 'value',
  ) => {
    const place = tree.locate(path, at)
    // What a missing variable left behind is wrong for that reason alone.
    if (unfilled.some(({ line, column }) => line === place.line && column === place.column)) return
    const advice = suggestion === undefined ? {} : { suggestion }
    problems.push({ severity, file, ...place, path: formatPath(path), message, ...advice })
  }
}

/** Texts shorter than this are too common to be replaced outside of quotes. */
const TELLING_LENGTH = 6

/** Puts `${VAR}` back where a message repeats what the variable held. */
function withoutFilled(problem: Problem, filled: readonly Filled[]): Problem {
  const hide = (text: string) =>
    filled.reduce((hidden, { written, value }) => {
      const quoted = hidden.replaceAll(shown(value), () => shown(written))
      return value.length < TELLING_LENGTH ? quoted : quoted.replaceAll(value, () => written)
    }, text)
  const { suggestion } = problem
  return {
    ...problem,
    message: hide(problem.message),
    ...(suggestion !== undefined && { suggestion: hide(suggestion) }),
  }
}
