/** The operator's side of a Sluice: the admin port, reload, and the SLO windows kept over restarts. */
import type { Server } from 'node:http'
import { createAdaptorServer } from '@hono/node-server'
import { createAdminApp } from '../admin/app.ts'
import type { LearntState } from '../admin/learnt-json.ts'
import type { ReloadResult as AdminReloadResult } from '../admin/ports.ts'
import { createAgentServer } from '../admin/weight.ts'
import { formatProblem } from '../config/problem.ts'
import { createReloader, type ReloadCause, type Reloader, type ReloadResult } from '../config/reload.ts'
import type { Log } from '../telemetry/log.ts'
import { type Clock, systemClock } from '../upstream/clock.ts'
import type { Brain } from './brain.ts'
import { learntAdvice } from './engine-advice.ts'
import { closeServer, listen } from './listen.ts'
import { PROFILE_FACTS } from './profile-facts.ts'
import { waitingByClass } from './samples.ts'
import { openSloState } from './slo-state.ts'
import { watchSloHealth } from './slo-watch.ts'
import { packageVersion } from './terminal.ts'

export interface AdminSideOptions {
  readonly brain: Brain
  /** The file that the configuration came from; without one there is nothing to reload. */
  readonly path?: string
  readonly env?: Readonly<Record<string, string | undefined>>
  readonly log: Log
  readonly draining: () => boolean
  readonly clock?: Clock
}

export interface AdminSide {
  /** Opens its ports and returns that of the admin pages; `port` takes the place of the file's. */
  listen(port?: number): Promise<number>
  reload(cause: ReloadCause): Promise<ReloadResult | undefined>
  /** Ends what looks again and again by itself. */
  stopWatch(): void
  close(): Promise<void>
}

export async function createAdminSide(options: AdminSideOptions): Promise<AdminSide> {
  const { brain, log } = options
  const sloState = await openSloState(brain.config.slo.stateFile, brain.observer.attainment, log)
  const reloader = options.path === undefined ? undefined : reloaderOf(options.path, options)
  const reload = async (cause: ReloadCause) => reloader?.reload(cause)
  const server = adminServer(options, () => reload('request'))
  const agent = createAgentServer(brain.observer.weight)
  const clock = options.clock ?? systemClock
  const watches = [watchSloHealth(brain.observer, clock), brain.shadow.watch(clock)]
  const stopWatch = () => {
    for (const stop of watches) stop()
  }
  return {
    async listen(port) {
      const { admin } = brain.config
      const opened = await listen(
        server,
        { ...admin.listen, port: port ?? admin.listen.port },
        'admin.listen',
      )
      if (admin.agent !== undefined) await listen(agent, admin.agent, 'admin.agent')
      return opened
    },
    reload,
    stopWatch,
    async close() {
      stopWatch()
      await Promise.all([server, agent].map(closeServer))
      await sloState.close()
    },
  }
}

function adminServer(
  { brain, draining }: AdminSideOptions,
  reload: () => Promise<ReloadResult | undefined>,
): Server {
  const app = createAdminApp({
    observer: brain.observer,
    samples: brain.samples,
    waitingByClass: () => waitingByClass(brain.gate.state.waiting, performance.now()),
    version: packageVersion(),
    mode: () => brain.mode,
    configDigest: () => brain.config.digest,
    configLoaded: () => true,
    draining,
    token: () => brain.config.admin.token,
    reload: async () => forAdmin(await reload()),
    // The contract leaves the shape to each scheduler; the one that predicts here is Sluice's own.
    predictor: () => (brain.predictor?.snapshot() as LearntState | undefined) ?? null,
    advice: () =>
      learntAdvice(
        brain.config,
        brain.predictor,
        brain.gate.state,
        (model) => brain.observer.metrics.demandOf(model) ?? [],
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

function reloaderOf(path: string, { brain, env, log }: AdminSideOptions): Reloader {
  return createReloader({
    path,
    current: brain.config,
    env: env ?? process.env,
    profiles: PROFILE_FACTS,
    apply: (config, changes) => brain.apply(config, changes),
    log: {
      info: (facts, message) => log.line('info', 'reload', { ...facts, message }),
      warn: (facts, message) => log.line('warn', 'reload', { ...facts, message }),
      error: (facts, message) => log.line('error', 'reload', { ...facts, message }),
    },
    onResult: (result) => {
      if (!result.ok) brain.observer.onReloadFailed()
    },
  })
}
