/** Turns OpenTelemetry on when the standard variables ask for it; without them nothing of it is loaded. */
import type { TraceSampler } from '../edge/request-trace.ts'
import { type Env, otelSettings } from '../otel/settings.ts'
import type { Otel } from '../otel/start.ts'
import { errorFields, type Log } from '../telemetry/log.ts'
import type { Brain } from './brain.ts'
import { packageVersion } from './terminal.ts'

/** How long the end of the process waits for a collector that does not answer, in ms. */
export const OTEL_CLOSE_MS = 5000

/**
 * Undefined when nothing is turned on. Trouble with telemetry is a line in the log and never a reason not to serve.
 * `runtime` is asked only once it serves. What the exporters read themselves (endpoints, headers, TLS) they read from
 * the environment of the process.
 */
export async function openOtel(
  env: Env,
  log: Log,
  runtime: () => Pick<Brain, 'observer' | 'fleet'>,
): Promise<Otel | undefined> {
  const settings = otelSettings(env)
  for (const message of settings.warnings) log.line('warn', 'otel_setting', { message })
  if (settings.traces === undefined && settings.metrics === undefined) return undefined
  try {
    const { startOtel } = await import('../otel/start.ts')
    const otel = await startOtel(settings, {
      version: packageVersion(),
      log,
      page: async () => String(await runtime().observer.metrics.scrape('text')),
      nameOf: (id) => runtime().fleet.replica(id)?.name ?? id,
      engineOf: (id) => runtime().fleet.replica(id)?.adapter.kind,
      nowMs: () => performance.now(),
      unixMs: Date.now,
    })
    const { traces, metrics } = settings
    log.line('info', 'otel_on', { traces: traces?.protocol, metrics: metrics?.protocol })
    return otel
  } catch (error) {
    const todo = 'nothing is exported: install the optional packages too (`npm ci`), or unset OTEL_*'
    log.line('error', 'otel_off', { ...errorFields(error), todo })
    return undefined
  }
}

/** What a worker needs of it: which traces are recorded. That packages are missing is told by whoever exports. */
export async function openSampler(env: Env): Promise<TraceSampler | undefined> {
  const { traces } = otelSettings(env)
  if (traces === undefined) return undefined
  try {
    const { samplerOf } = await import('../otel/sampler.ts')
    return { sampled: samplerOf(traces) }
  } catch {
    return undefined
  }
}
