/** What the checks beyond shape share: the file, its names, and where to report. */
import type { DeclaredNames } from './names.ts'
import type { Path } from './problem.ts'
import type { ConfigFile } from './schema.ts'
import { didYouMean } from './suggest.ts'
import { shown } from './units.ts'

/** What is known of GPU profiles; handed in, since profiles live with the simulator. */
export interface ProfileFacts {
  readonly ids: readonly string[]
  /** TTFT in ms on an idle replica for a prompt of that size, or undefined for an unknown profile. */
  floorTtftMs(profileId: string, promptTokens: number): number | undefined
  /** TPOT in ms of a stream that has a replica to itself, or undefined for an unknown profile. */
  floorTpotMs(profileId: string): number | undefined
}

export interface CheckContext {
  readonly file: ConfigFile
  readonly names: DeclaredNames
  readonly profiles: ProfileFacts | undefined
  /** What stands in the file itself at that path of `file`, wrong parts included. */
  written(path: Path): unknown
  error(path: Path, message: string, suggestion?: string, at?: 'key' | 'value'): void
  warn(path: Path, message: string, suggestion?: string, at?: 'key' | 'value'): void
}

/** Reports a class that nobody declared. */
export function checkClassName(context: CheckContext, path: Path, name: string): void {
  if (context.names.classes.includes(name)) return
  context.error(path, `there is no class ${shown(name)}`, didYouMean(name, context.names.classes))
}

/** Reports a model that nobody declared. */
export function checkModelName(context: CheckContext, path: Path, name: string, at?: 'key' | 'value'): void {
  if (context.names.models.has(name)) return
  context.error(
    path,
    `there is no model ${shown(name)}`,
    didYouMean(name, [...context.names.models.keys()]),
    at,
  )
}

/** The same where an adapter is not enough, since what is said there holds for all that its replicas serve. */
export function checkWholeModel(context: CheckContext, path: Path, name: string, at?: 'key' | 'value'): void {
  const model = context.names.adapters.get(name)
  if (model === undefined) checkModelName(context, path, name, at)
  else context.error(path, `${shown(name)} is an adapter, and this is said of models`, `write ${model}`, at)
}

/** Reports each value that came before, with the word for what it is. */
export function checkUnique(
  context: CheckContext,
  what: string,
  entries: readonly { readonly path: Path; readonly value: string }[],
): void {
  const seen = new Set<string>()
  for (const { path, value } of entries) {
    if (seen.has(value))
      context.error(path, `the ${what} ${shown(value)} stands here a second time`, 'keep one of them')
    seen.add(value)
  }
}
