/** Checks classes: targets that make sense together, that the hardware can keep, and that somebody can reach. */
import { BEST_EFFORT } from './builtin-classes.ts'
import { type CheckContext, checkClassName, checkWholeModel } from './checks.ts'
import type { Path } from './problem.ts'
import { mergeTargets } from './resolve-classes.ts'
import type { FileTargets } from './schema.ts'
import { formatDuration, shown } from './units.ts'

export function checkClasses(context: CheckContext): void {
  const { file } = context
  for (const [name, { models = {}, ...targets }] of Object.entries(file.classes)) {
    const at: Path = ['classes', name]
    checkTargets(context, at, targets)
    for (const [model, override] of Object.entries(models)) {
      const path = [...at, 'models', model]
      checkWholeModel(context, path, model, 'key')
      checkTargets(context, path, mergeTargets(targets, override), override)
    }
    checkFloor(context, at, name)
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
  const { ttft, e2e, max_wait: maxWait, overload } = targets
  const promises = PROMISES.some((key) => targets[key] !== undefined)
  if (own.ttft_per_1k_tokens !== undefined && ttft === undefined) {
    context.error([...at, 'ttft_per_1k_tokens'], 'there is no ttft that could grow', 'add ttft', 'key')
  }
  if (own.objective !== undefined && !promises) {
    context.error(
      [...at, 'objective'],
      'an objective without a target measures nothing',
      'add ttft, tpot or e2e',
      'key',
    )
  }
  if (own.overload !== undefined && overload === 'shed' && !promises) {
    const message = 'without a target nothing is ever too late to be shed'
    context.error([...at, 'overload'], message, 'add ttft, tpot or e2e, or write overload: wait')
  }
  if ((own.ttft ?? own.e2e) !== undefined && ttft !== undefined && e2e !== undefined && ttft > e2e) {
    const key = own.ttft === undefined ? 'e2e' : 'ttft'
    const message = `ttft ${formatDuration(ttft)} is later than e2e ${formatDuration(e2e)}`
    context.error([...at, key], message, 'the first token comes before the last')
  }
  const requestMs = context.file.limits.request
  if (own.max_wait !== undefined && maxWait !== undefined && maxWait > requestMs) {
    const message = `waiting ${formatDuration(maxWait)} is longer than limits.request lets a request live`
    context.warn(
      [...at, 'max_wait'],
      message,
      `write at most ${formatDuration(requestMs)}, or raise limits.request`,
    )
  }
}

/** A TTFT below what an idle replica needs for one token can never be met. */
function checkFloor(context: CheckContext, at: Path, name: string): void {
  const { file, profiles } = context
  const fileClass = file.classes[name]
  if (profiles === undefined || fileClass === undefined) return
  const { models: overrides = {}, ...targets } = fileClass
  const judged = file.models.flatMap((model) => {
    const floorMs = model.profile === undefined ? undefined : profiles.floorTtftMs(model.profile, 1)
    const override = overrides[model.name]
    const ttftMs = override?.ttft ?? targets.ttft
    if (floorMs === undefined || ttftMs === undefined) return []
    return [
      { model, floorMs, ttftMs, path: override?.ttft === undefined ? at : [...at, 'models', model.name] },
    ]
  })
  const keepable =
    judged.length < file.models.length || judged.some(({ floorMs, ttftMs }) => ttftMs >= floorMs)
  for (const { model, floorMs, ttftMs, path } of judged) {
    if (ttftMs >= floorMs) continue
    const message = `ttft ${formatDuration(ttftMs)} is under the floor of ${model.name}: idle, its profile needs ${Math.ceil(floorMs)}ms for one token`
    const own = path.length > at.length
    const roomyMs = Math.ceil((floorMs * 2) / 50) * 50
    const suggestion = `write for example models: { ${model.name}: { ttft: ${roomyMs}ms } }`
    if (own || !keepable)
      context.error([...path, 'ttft'], message, own ? `write for example ${roomyMs}ms` : suggestion)
    else context.warn([...path, 'ttft'], message, suggestion)
  }
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
