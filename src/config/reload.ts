/** Takes a changed file into service: validated first, one at a time, the old configuration kept when it is bad. */
import type { ProfileFacts } from './checks.ts'
import type { Config } from './config.ts'
import { diffConfigs, sameConfig } from './diff.ts'
import type { Environment } from './interpolate.ts'
import { formatProblem, type Problem } from './problem.ts'
import { readConfig } from './read.ts'

/** What asked for it: a signal, the file watch or `POST /-/reload`. */
export type ReloadCause = 'signal' | 'watch' | 'request'

export type ReloadResult =
  | {
      readonly ok: true
      readonly config: Config
      /** What differs from before, line by line; empty when nothing does. */
      readonly changes: readonly string[]
      readonly warnings: readonly Problem[]
      /** Keys whose change takes effect at the next start only. */
      readonly needsRestart: readonly string[]
    }
  /** The old configuration stays in service. */
  | { readonly ok: false; readonly problems: readonly Problem[] }

/** The part of a pino logger that is used here. */
export interface ReloadLog {
  info(facts: object, message: string): void
  warn(facts: object, message: string): void
  error(facts: object, message: string): void
}

export interface ReloaderOptions {
  readonly path: string
  readonly current: Config
  readonly env: Environment
  readonly profiles?: ProfileFacts
  /** Puts the configuration into service; when it throws, the old one counts as still in service. */
  readonly apply: (config: Config, changes: readonly string[]) => void | Promise<void>
  readonly log: ReloadLog
  /** Told of every result, e.g. for metrics. */
  readonly onResult?: (result: ReloadResult) => void
}

export interface Reloader {
  readonly current: Config
  /** Calls that come while one runs share the next run, which reads the file after they came. Never rejects. */
  reload(cause: ReloadCause): Promise<ReloadResult>
}

export function createReloader(options: ReloaderOptions): Reloader {
  let current = options.current
  let running: Promise<unknown> | undefined
  let next: Promise<ReloadResult> | undefined
  const run = async (cause: ReloadCause): Promise<ReloadResult> => {
    const result = await attempt(options, current)
    if (result.ok) current = result.config
    report(options, cause, result)
    return result
  }
  return {
    get current() {
      return current
    },
    reload(cause) {
      if (next !== undefined) return next
      const mine: Promise<ReloadResult> = Promise.resolve(running).then(() => {
        next = undefined
        running = mine
        return run(cause)
      })
      next = mine
      return mine
    },
  }
}

async function attempt(options: ReloaderOptions, current: Config): Promise<ReloadResult> {
  const { path, env, profiles, apply } = options
  const loaded = await readConfig(path, { env, ...(profiles !== undefined && { profiles }) })
  if (!loaded.ok) return loaded
  const { config, warnings } = loaded
  const changes = diffConfigs(current, config)
  const needsRestart = restartKeys(current, config)
  if (sameConfig(current, config)) return { ok: true, config: current, changes, warnings, needsRestart }
  try {
    await apply(config, changes)
    return { ok: true, config, changes, warnings, needsRestart }
  } catch (error) {
    const message = `it is valid and could not be put into service: ${error instanceof Error ? error.message : String(error)}`
    return {
      ok: false,
      problems: [{ severity: 'error', file: path, line: 1, column: 1, path: '', message }],
    }
  }
}

/** Sockets that listen and the file of past windows are opened once, and workers are counted once. */
function restartKeys(before: Config, after: Config): readonly string[] {
  const addresses = ({ listen, admin }: Config) => {
    return { listen, 'admin.listen': admin.listen, 'admin.agent': admin.agent }
  }
  const [old, now] = [addresses(before), addresses(after)]
  const moved = (['listen', 'admin.listen', 'admin.agent'] as const).filter(
    (key) => old[key]?.host !== now[key]?.host || old[key]?.port !== now[key]?.port,
  )
  const others = [
    ...(before.workers === after.workers ? [] : ['workers']),
    ...(before.slo.stateFile === after.slo.stateFile ? [] : ['slo.state_file']),
  ]
  return [...moved, ...others]
}

function report({ path, log, onResult }: ReloaderOptions, cause: ReloadCause, result: ReloadResult): void {
  if (!result.ok) {
    const problems = result.problems.map(formatProblem)
    log.error({ cause, path, problems }, 'configuration refused; the old one stays in service')
  } else {
    const { changes, config, needsRestart } = result
    const facts = { cause, path, digest: config.digest, changes }
    log.info(facts, changes.length === 0 ? 'configuration unchanged' : 'configuration reloaded')
    if (result.warnings.length > 0) {
      log.warn({ path, warnings: result.warnings.map(formatProblem) }, 'the configuration has warnings')
    }
    if (needsRestart.length > 0)
      log.warn({ keys: needsRestart }, 'these changes take effect at the next start')
  }
  onResult?.(result)
}
