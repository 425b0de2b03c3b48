/** `sluice serve`: the composition root. Loads the file, opens both ports, reloads, and drains on a signal. */
import { Command, Option } from 'commander'
import type { Config } from '../config/config.ts'
import { formatProblem } from '../config/problem.ts'
import { readConfig } from '../config/read.ts'
import type { ReloadCause, ReloadResult } from '../config/reload.ts'
import { formatAddress } from '../config/units.ts'
import { watchConfig } from '../config/watch.ts'
import { createTrafficServer } from '../edge/server.ts'
import { createLog, LOG_LEVELS, type LogLevel } from '../telemetry/log.ts'
import type { Clock } from '../upstream/clock.ts'
import { createAdminSide } from './admin-side.ts'
import { closeServer, listen } from './listen.ts'
import { OTEL_CLOSE_MS, openOtel } from './otel.ts'
import { PROFILE_FACTS } from './profile-facts.ts'
import { Runtime } from './runtime.ts'
import { onStopSignals } from './signals.ts'
import { Supervisor, type SupervisorOptions } from './supervisor.ts'
import { packageVersion, systemTerminal, type Terminal } from './terminal.ts'

export interface StartOptions {
  readonly config: Config
  /** The file that it came from; without one there is nothing to reload. */
  readonly path?: string
  readonly env?: Readonly<Record<string, string | undefined>>
  readonly logLevel?: LogLevel
  /** Sets the timers of the rim; the real one unless a test turns it. */
  readonly clock?: Clock
}

/** A Sluice that serves. */
export interface Running {
  readonly port: number
  readonly adminPort: number
  readonly runtime: Runtime
  reload(cause: ReloadCause): Promise<ReloadResult | undefined>
  /** Nothing new is taken; resolves when nothing is under way, at `timeouts.drain` at the latest. */
  drain(): Promise<void>
  /** Ends a drain now. */
  hurry(): void
  /** Ends what is under way and closes everything. Idempotent. */
  close(): Promise<void>
}

/** Starts a Sluice under a loaded configuration. Rejects, with everything closed again, when a port can't be had. */
export async function startSluice(options: StartOptions): Promise<Running> {
  const { config } = options
  const log = createLog({ level: options.logLevel ?? 'info', nowMs: () => performance.now() })
  const otel = await openOtel(options.env ?? process.env, log, () => runtime)
  const runtime: Runtime = new Runtime(config, log, otel)
  const { edge, observer } = runtime
  const traffic = createTrafficServer({ edge, observer, rng: Math.random })
  const side = await createAdminSide({
    ...options,
    brain: runtime,
    log,
    draining: () => edge.drain.draining,
  })
  let closing: Promise<void> | undefined
  const close = async () => {
    side.stopWatch()
    await runtime.close()
    await Promise.all([closeServer(traffic), side.close()])
    await otel?.close(OTEL_CLOSE_MS)
    log.flush()
  }
  try {
    const adminPort = await side.listen()
    const port = await listen(traffic, config.listen, 'listen')
    return {
      port,
      adminPort,
      runtime,
      reload: side.reload,
      drain: () => {
        side.stopWatch()
        return edge.drain.begin(runtime.config.timeouts.drainMs)
      },
      hurry: () => edge.drain.now(),
      close: () => {
        closing ??= close()
        return closing
      },
    }
  } catch (error) {
    await close()
    throw error
  }
}

const EXAMPLES = `
Examples:
  sluice serve -c sluice.yaml
  OTEL_EXPORTER_OTLP_ENDPOINT=http://collector:4318 sluice serve -c sluice.yaml
                         the same, with traces and metrics over OTLP
  kill -HUP <pid>        read the file again; a bad one changes nothing
  kill -TERM <pid>       drain, then stop; a second one stops now
`

export function serveCommand(terminal: Terminal = systemTerminal): Command {
  return new Command('serve')
    .description('serve traffic as the file says')
    .requiredOption('-c, --config <file>', 'the configuration')
    .addOption(
      new Option('--log-level <level>', 'the least important lines to write')
        .choices(LOG_LEVELS)
        .default('info'),
    )
    .addHelpText('after', EXAMPLES)
    .action(async (flags: { readonly config: string; readonly logLevel: LogLevel }) => {
      const loaded = await readConfig(flags.config, { env: terminal.env, profiles: PROFILE_FACTS })
      const problems = loaded.ok ? loaded.warnings : loaded.problems
      for (const problem of problems) terminal.err(`${formatProblem(problem)}\n`)
      if (!loaded.ok) {
        terminal.exitWith(1)
        return
      }
      await serve(loaded.config, flags.config, flags.logLevel, terminal)
    })
}

/** A Sluice of one process or of several, as a signal or the file watch drives it. */
interface Serving {
  readonly port: number
  readonly adminPort: number
  reload(cause: 'signal' | 'watch'): unknown
  drain(signal: string): Promise<void>
  hurry(): void
  close(): Promise<void>
  onFault(error: unknown): void
}

/** Serves until a signal has ended it. */
async function serve(config: Config, path: string, logLevel: LogLevel, terminal: Terminal): Promise<void> {
  const start = config.workers === 1 ? serveAlone : serveWithWorkers
  const serving = await start({ config, path, env: terminal.env, logLevel })
  terminal.err(greeting(config, serving))
  const watch = watchConfig({
    path,
    onChange: () => void serving.reload('watch'),
    onError: (error) => serving.onFault(error),
  })
  await onStopSignals({
    onReload: () => void serving.reload('signal'),
    onFirst: (signal) => serving.drain(signal),
    onSecond: () => serving.hurry(),
  })
  await watch.close()
  await serving.close()
  // All is closed; an export that hangs would still keep the process for as long as it may take.
  process.exit()
}

type ServeOptions = StartOptions & SupervisorOptions

async function serveAlone(options: ServeOptions): Promise<Serving> {
  const running = await startSluice(options)
  const { observer, edge } = running.runtime
  return {
    ...running,
    drain(signal) {
      observer.onEvent('draining', { signal, under_way: edge.underWay })
      return running.drain()
    },
    close() {
      observer.onEvent('stopped')
      return running.close()
    },
    onFault: (error) => observer.onFault(error),
  }
}

async function serveWithWorkers(options: ServeOptions): Promise<Serving> {
  const supervisor = new Supervisor(options)
  await supervisor.start()
  return supervisor
}

const MODE_WORDS: Readonly<Record<Config['mode'], string>> = {
  enforce: 'ENFORCE: requests are admitted, held, rerouted and shed',
  shadow:
    'SHADOW: holds nobody, refuses nobody for latency, records what enforcing would do (set `mode: enforce`)',
  off: 'OFF: plain routing, no predictions (set `mode: shadow` or `mode: enforce`)',
}

function greeting(config: Config, running: Pick<Serving, 'port' | 'adminPort'>): string {
  const traffic = formatAddress({ ...config.listen, port: running.port })
  const admin = formatAddress({ ...config.admin.listen, port: running.adminPort })
  const models = config.models.map(({ name }) => name).join(', ')
  return `sluice ${packageVersion()}\n  mode     ${MODE_WORDS[config.mode]}\n  traffic  http://${traffic}\n  admin    http://${admin}\n  models   ${models}\n`
}
