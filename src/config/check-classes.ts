/** Checks classes: targets that make sense together, that the hardware can keep, and that somebody can reach. */
import { BEST_EFFORT } from './builtin-classes.ts'
import { type CheckContext, checkClassName, checkWholeModel, type ProfileFacts } from './checks.ts'
import type { Path } from './problem.ts'
import { mergeTargets } from './resolve-classes.ts'
import type { FileTargets } from './schema.ts'
import { formatDuration, shown } from './units.ts'

export function checkClasses(context: CheckContext): void {
  const { file, profiles } = context
  for (const [name, { models = {}, ...targets }] of Object.entries(file.classes)) {
    const at: Path = ['classes', name]
    checkTargets(context, at, targets)
    for (const [model, override] of Object.entries(models)) {
      const path = [...at, 'models', model]
      checkWholeModel(context, path, model, 'key')
      checkTargets(context, path, mergeTargets(targets, override), override)
    }
    if (profiles === undefined) continue
    checkTtftFloor(context, profiles, name)
    checkTpotFloor(context, profiles, name)
  }
  checkClassName(context, ['default_class'], file.default_class)
  checkReach(context)
}

const PROMISES = ['ttft', 'tpot', 'e2e'] as const

/** `own` are the keys that stand at this place; problems of inherited ones are told where they stand. */
function checkTargets(
  context: CheckContext,
  at: Path,
  targets: FileTargets,
  own: FileTargets = targets,
): void {
  checkPromised(context, at, targets, own)
  const { ttft, e2e, max_wait: maxWait } = targets
  if ((own.ttft ?? own.e2e) !== undefined && ttft !== undefined && e2e !== undefined && ttft > e2e) {
    const key = own.ttft === undefined ? 'e2e' : 'ttft'
    const message = `ttft ${formatDuration(ttft)} is later than e2e ${formatDuration(e2e)}`
    context.error([...at, key], message, 'the first token comes before the last')
  }
  const requestMs = context.file.limits.request
  if (own.max_wait !== undefined && maxWait !== undefined && maxWait > requestMs) {
    const message = `waiting ${formatDuration(maxWait)} is longer than limits.request lets a request live`
    const suggestion = `write at most ${formatDuration(requestMs)}, or raise limits.request`
    context.warn([...at, 'max_wait'], message, suggestion)
  }
}

/** What means nothing without a target. */
function checkPromised(context: CheckContext, at: Path, targets: FileTargets, own: FileTargets): void {
  const { ttft, overload } = targets
  const promises = PROMISES.some((key) => targets[key] !== undefined)
  if (own.ttft_per_1k_tokens !== undefined && ttft === undefined) {
    context.error([...at, 'ttft_per_1k_tokens'], 'there is no ttft that could grow', 'add ttft', 'key')
  }
  if (own.objective !== undefined && !promises) {
    const message = 'an objective without a target measures nothing'
    context.error([...at, 'objective'], message, 'add ttft, tpot or e2e', 'key')
  }
  if (own.overload !== undefined && overload === 'shed' && !promises) {
    const message = 'without a target nothing is ever too late to be shed'
    context.error([...at, 'overload'], message, 'add ttft, tpot or e2e, or write overload: wait')
  }
}

interface ModelPromise {
  readonly model: string
  readonly targetMs: number
  /** What an idle replica of the model needs. */
  readonly floorMs: number
  /** Where the target stands. */
  readonly path: Path
  /** It stands in an override for that model. */
  readonly own: boolean
  /** It binds no other model. */
  readonly alone: boolean
}

/** What the class promises on each model whose floor is known. */
function promisesOf(
  { file }: CheckContext,
  name: string,
  key: 'ttft' | 'tpot',
  floorOf: (profileId: string) => number | undefined,
): readonly ModelPromise[] {
  const { models: overrides = {}, ...targets } = file.classes[name] ?? {}
  return file.models.flatMap(({ name: model, profile }) => {
    const floorMs = profile === undefined ? undefined : floorOf(profile)
    const own = overrides[model]?.[key] !== undefined
    const alone = own || file.models.length === 1
    const targetMs = overrides[model]?.[key] ?? targets[key]
    if (floorMs === undefined || targetMs === undefined) return []
    const path: Path = own ? ['classes', name, 'models', model, key] : ['classes', name, key]
    return [{ model, targetMs, floorMs, path, own, alone }]
  })
}

/** A TTFT below what an idle replica needs for one token can never be met. */
function checkTtftFloor(context: CheckContext, profiles: ProfileFacts, name: string): void {
  const judged = promisesOf(context, name, 'ttft', (id) => profiles.floorTtftMs(id, 1))
  const keepable =
    judged.length < context.file.models.length || judged.some(({ targetMs, floorMs }) => targetMs >= floorMs)
  for (const { model, targetMs, floorMs, path, own, alone } of judged) {
    if (targetMs >= floorMs) continue
    const message = `ttft ${formatDuration(targetMs)} is under the floor of ${model}: idle, its profile needs ${Math.ceil(floorMs)}ms for one token`
    const roomy = `ttft: ${Math.ceil((floorMs * 2) / 50) * 50}ms`
    const report = own || !keepable ? context.error : context.warn
    report(path, message, suggestionFor(model, roomy, alone))
  }
}

/** No error, since an engine that speculates makes more than one token a step. */
function checkTpotFloor(context: CheckContext, profiles: ProfileFacts, name: string): void {
  const judged = promisesOf(context, name, 'tpot', (id) => profiles.floorTpotMs(id))
  for (const { model, targetMs, floorMs, path, alone } of judged) {
    if (targetMs >= floorMs) continue
    const message = `tpot ${formatDuration(targetMs)} is under the floor of ${model}: with one stream alone, its profile needs ${floorMs.toFixed(1)}ms a token`
    const roomy = `tpot: ${Math.ceil((floorMs * 2) / 5) * 5}ms`
    context.warn(path, message, suggestionFor(model, roomy, alone))
  }
}

function suggestionFor(model: string, target: string, alone: boolean): string {
  return `write for example ${alone ? target : `models: { ${model}: { ${target} } }`}`
}

/** Names classes of the file that no tenant may use; without restricted tenants the header reaches every class. */
function checkReach(context: CheckContext): void {
  const { file, names } = context
  if (file.auth === 'none' || file.tenants.length === 0) return
  if (file.tenants.some(({ classes }) => classes === undefined)) return
  const reachable = new Set(file.tenants.flatMap(({ classes = [] }) => classes))
  for (const name of names.ownClasses) {
    if (reachable.has(name) || name === BEST_EFFORT) continue
    const message = `nobody can reach the class ${shown(name)}: no tenant may use it`
    context.warn(['classes', name], message, 'add it to the classes of a tenant, or remove it', 'key')
  }
}
