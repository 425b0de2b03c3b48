/** `sluice serve`: the composition root. Loads the file, opens both ports, reloads, and drains on a signal. */
import type { Server } from 'node:http'
import { createAdaptorServer } from '@hono/node-server'
import { Command, Option } from 'commander'
import { createAdminApp } from '../admin/app.ts'
import type { ReloadResult as AdminReloadResult } from '../admin/ports.ts'
import { createAgentServer } from '../admin/weight.ts'
import type { Config } from '../config/config.ts'
import { formatProblem } from '../config/problem.ts'
import { readConfig } from '../config/read.ts'
import { createReloader, type ReloadCause, type Reloader, type ReloadResult } from '../config/reload.ts'
import { formatAddress } from '../config/units.ts'
import { watchConfig } from '../config/watch.ts'
import { createTrafficServer } from '../edge/server.ts'
import { createLog, LOG_LEVELS, type Log, type LogLevel } from '../telemetry/log.ts'
import { type Clock, systemClock } from '../upstream/clock.ts'
import { learntAdvice } from './engine-advice.ts'
import { closeServer, listen } from './listen.ts'
import { OTEL_CLOSE_MS, openOtel } from './otel.ts'
import { PROFILE_FACTS } from './profile-facts.ts'
import { Runtime } from './runtime.ts'
import { waitingByClass } from './samples.ts'
import { onStopSignals } from './signals.ts'
import { openSloState } from './slo-state.ts'
import { watchSloHealth } from './slo-watch.ts'
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
  const sloState = await openSloState(config.slo.stateFile, runtime.observer.attainment, log)
  const reloader = options.path === undefined ? undefined : reloaderOf(runtime, options.path, options, log)
  const reload = async (cause: ReloadCause) => reloader?.reload(cause)
  const { edge, observer } = runtime
  const traffic = createTrafficServer({ edge, observer, rng: Math.random })
  const admin = adminServer(runtime, () => reload('request'))
  const agent = createAgentServer(observer.weight)
  const clock = options.clock ?? systemClock
  const watches = [watchSloHealth(observer, clock), runtime.shadow.watch(clock)]
  const stopWatch = () => {
    for (const stop of watches) stop()
  }
  let closing: Promise<void> | undefined
  const close = async () => {
    stopWatch()
    await runtime.close()
    await Promise.all([traffic, admin, agent].map(closeServer))
    await sloState.close()
    await otel?.close(OTEL_CLOSE_MS)
    log.flush()
  }
  try {
    const adminPort = await listen(admin, config.admin.listen, 'admin.listen')
    if (config.admin.agent !== undefined) await listen(agent, config.admin.agent, 'admin.agent')
    const port = await listen(traffic, config.listen, 'listen')
    return {
      port,
      adminPort,
      runtime,
      reload,
      drain: () => {
        stopWatch()
        return runtime.edge.drain.begin(runtime.config.timeouts.drainMs)
      },
      hurry: () => runtime.edge.drain.now(),
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

function adminServer(runtime: Runtime, reload: () => Promise<ReloadResult | undefined>): Server {
  const app = createAdminApp({
    observer: runtime.observer,
    samples: runtime.samples,
    waitingByClass: () => waitingByClass(runtime.gate.state.waiting, performance.now()),
    version: packageVersion(),
    mode: () => runtime.mode,
    configDigest: () => runtime.config.digest,
    configLoaded: () => true,
    draining: () => runtime.edge.drain.draining,
    token: () => runtime.config.admin.token,
    reload: async () => forAdmin(await reload()),
    predictor: () => runtime.predictor?.snapshot() ?? null,
    advice: () =>
      learntAdvice(
        runtime.config,
        runtime.predictor,
        runtime.gate.state,
        (model) => runtime.observer.metrics.demandOf(model) ?? [],
      ),
    nowMs: () => performance.now(),
    unixMs: Date.now,
  })
  return createAdaptorServer({ fetch: app.fetch, overrideGlobalObjects: false }) as Server
}

function forAdmin(result: ReloadResult | undefined): AdminReloadResult {
  if (result === undefined) return { ok: false, problems: ['this Sluice was started without a file'] }
  if (!result.ok) return { ok: false, problems: result.problems.map(formatProblem) }
  return { ok: true, digest: result.config.digest, changes: result.changes }
}

function reloaderOf(runtime: Runtime, path: string, options: StartOptions, log: Log): Reloader {
  return createReloader({
    path,
    current: options.config,
    env: options.env ?? process.env,
    profiles: PROFILE_FACTS,
    apply: (config, changes) => runtime.apply(config, changes),
    log: {
      info: (facts, message) => log.line('info', 'reload', { ...facts, message }),
      warn: (facts, message) => log.line('warn', 'reload', { ...facts, message }),
      error: (facts, message) => log.line('error', 'reload', { ...facts, message }),
    },
    onResult: (result) => {
      if (!result.ok) runtime.observer.onReloadFailed()
    },
  })
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

/** Serves until a signal has ended it. */
async function serve(config: Config, path: string, logLevel: LogLevel, terminal: Terminal): Promise<void> {
  const running = await startSluice({ config, path, env: terminal.env, logLevel })
  terminal.err(greeting(config, running))
  const watch = watchConfig({
    path,
    onChange: () => void running.reload('watch'),
    onError: (error) => running.runtime.observer.onFault(error),
  })
  const { observer } = running.runtime
  await onStopSignals({
    onReload: () => void running.reload('signal'),
    onFirst: (signal) => {
      observer.onEvent('draining', { signal, under_way: running.runtime.edge.underWay })
      return running.drain()
    },
    onSecond: () => running.hurry(),
  })
  observer.onEvent('stopped')
  await watch.close()
  await running.close()
  // All is closed; an export that hangs would still keep the process for as long as it may take.
  process.exit()
}

const MODE_WORDS: Readonly<Record<Config['mode'], string>> = {
  enforce: 'ENFORCE: requests are admitted, held, rerouted and shed',
  shadow: 'SHADOW: nothing is held or shed; what enforcing would have done is recorded (set `mode: enforce`)',
  off: 'OFF: plain routing, no predictions (set `mode: shadow` or `mode: enforce`)',
}

function greeting(config: Config, running: Running): string {
  const traffic = formatAddress({ ...config.listen, port: running.port })
  const admin = formatAddress({ ...config.admin.listen, port: running.adminPort })
  const models = config.models.map(({ name }) => name).join(', ')
  return `sluice ${packageVersion()}\n  mode     ${MODE_WORDS[config.mode]}\n  traffic  http://${traffic}\n  admin    http://${admin}\n  models   ${models}\n`
}
