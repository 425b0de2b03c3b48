/** The demo's two fleets: the same engines twice, once bare and once behind Sluice, all in processes of their own. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { SloClass } from '../core/request.ts'
import type { Ms } from '../core/units.ts'
import { answering, type Child, freePort, startChild } from './demo-children.ts'
import {
  DEMO_CLASSES,
  DEMO_ENGINE_ARGS,
  DEMO_MODEL,
  DEMO_PROFILE,
  REPLICAS_PER_FLEET,
} from './demo-scenario.ts'

export interface DemoFleets {
  readonly bareUrls: readonly string[]
  readonly sluiceUrl: string
  readonly adminUrl: string
  /** Resolves when a child ends that should not have, with its name and last words. */
  readonly failed: Promise<string>
  /** Ends every child and removes what was written. Idempotent. */
  close(): Promise<void>
}

/** A cold machine may take a while to load Node six times. */
const READY_MS: Ms = 30_000

/** Starts everything and waits until it serves. Nothing is left behind when it throws. */
export async function startFleets(
  binary: string,
  wantedAdminPort: number,
  signal: AbortSignal,
): Promise<DemoFleets> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-demo-'))
  const children: Child[] = []
  const close = async () => {
    await Promise.all(children.map((child) => child.close()))
    await rm(folder, { recursive: true, force: true })
  }
  try {
    const adminPort = await freePort(wantedAdminPort)
    const ports = await Promise.all(Array.from({ length: 2 * REPLICAS_PER_FLEET + 1 }, () => freePort()))
    const [trafficPort = 0, ...enginePorts] = ports
    const urls = enginePorts.map((port) => `http://127.0.0.1:${port}`)
    const [bareUrls, protectedUrls] = [urls.slice(0, REPLICAS_PER_FLEET), urls.slice(REPLICAS_PER_FLEET)]
    enginePorts.forEach((port, index) => {
      const args = ['engine', '--profile', DEMO_PROFILE, '--model', DEMO_MODEL, '--port', String(port)]
      children.push(startChild({ binary, args, name: `engine-${index + 1}`, folder }))
    })
    const config = join(folder, 'sluice.yaml')
    await writeFile(config, demoConfig(trafficPort, adminPort, protectedUrls))
    children.push(startChild({ binary, args: ['serve', '-c', config], name: 'sluice', folder }))
    const fleets = {
      bareUrls,
      sluiceUrl: `http://127.0.0.1:${trafficPort}`,
      adminUrl: `http://127.0.0.1:${adminPort}`,
      failed: Promise.race(children.map((child) => child.failed)),
      close,
    }
    await ready([...urls.map((url) => `${url}/health`), `${fleets.adminUrl}/readyz`], fleets.failed, signal)
    return fleets
  } catch (error) {
    await close()
    throw error
  }
}

async function ready(urls: readonly string[], failed: Promise<string>, signal: AbortSignal): Promise<void> {
  const waits = Promise.all(urls.map((url) => answering(url, READY_MS, signal)))
  const failure = await Promise.race([waits.then(() => undefined), failed])
  if (failure === undefined) return
  waits.catch(() => undefined)
  throw new Error(failure)
}

/** The file that Sluice is started with; JSON is YAML. It names the engines' arguments, as their operator
 * knows them, and no profile: how fast they are Sluice learns from nothing. */
export function demoConfig(trafficPort: number, adminPort: number, replicas: readonly string[]): string {
  const config = {
    listen: `127.0.0.1:${trafficPort}`,
    admin: { listen: `127.0.0.1:${adminPort}` },
    mode: 'enforce',
    models: [{ name: DEMO_MODEL, replicas, engine_args: DEMO_ENGINE_ARGS }],
    classes: Object.fromEntries(Object.values(DEMO_CLASSES).map((slo) => [slo.name, classEntry(slo)])),
    default_class: 'chat',
    auth: 'none',
  }
  return `${JSON.stringify(config, null, 2)}\n`
}

/** A promise in the file's own words. */
function classEntry(slo: SloClass): Record<string, string | number> {
  const ms = (value: Ms | undefined, key: string) => (value === undefined ? {} : { [key]: `${value}ms` })
  return {
    ...ms(slo.ttftMs, 'ttft'),
    ...(slo.ttftPer1kTokensMs === 0 ? {} : ms(slo.ttftPer1kTokensMs, 'ttft_per_1k_tokens')),
    ...ms(slo.tpotMs, 'tpot'),
    ...ms(slo.e2eMs, 'e2e'),
    ...(slo.objectiveRatio === undefined ? {} : { objective: `${slo.objectiveRatio * 100}%` }),
    ...(slo.weight === 1 ? {} : { weight: slo.weight }),
    ...(slo.overload === 'shed' ? {} : { overload: slo.overload, max_wait: `${slo.maxWaitMs}ms` }),
  }
}
