/** Nothing of OpenTelemetry is loaded until it is turned on. */
import { createRequire } from 'node:module'
import { afterEach, expect, it, vi } from 'vitest'
import { type OtlpReceiver, otlpReceiver } from '../support/otlp-receiver.ts'
import { type SluiceRig, startSluiceRig } from '../support/sluice-rig.ts'

let rig: SluiceRig | undefined
let receiver: OtlpReceiver | undefined
afterEach(async () => {
  await rig?.close()
  await receiver?.close()
  vi.unstubAllEnvs()
})

/** Packages of which a file is loaded. The API itself comes with prom-client. */
function loaded(): string[] {
  const files = Object.keys(createRequire(import.meta.url).cache)
  const names = files.flatMap((file) => /@opentelemetry\/([\w-]+)/.exec(file)?.[1] ?? [])
  return [...new Set(names)].filter((name) => name !== 'api')
}

async function serveOne(env: Readonly<Record<string, string>>): Promise<void> {
  rig = await startSluiceRig({ env })
  const client = rig.chat()
  ;(await rig.engine.nextRequest()).head().token().done()
  await client.waitComplete()
  await rig.close()
  rig = undefined
}

it('no package is loaded while nothing is exported, and those of the protocol once something is', async () => {
  await serveOne({})
  await serveOne({ OTEL_SERVICE_NAME: 'x', OTEL_TRACES_EXPORTER: 'none' })
  expect(loaded()).toEqual([])
  receiver = await otlpReceiver()
  vi.stubEnv('OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', `${receiver.url}/v1/traces`)
  await serveOne({ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${receiver.url}/v1/traces` })
  expect(receiver.spans.length).toBeGreaterThan(0)
  expect(loaded()).toContain('exporter-trace-otlp-proto')
  expect(loaded()).not.toContain('exporter-trace-otlp-http')
})
