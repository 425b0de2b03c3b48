/** A collector that is dead, silent or unwilling costs bounded memory, a line of log, and no request. */
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { openOtel } from '../../src/cli/otel.ts'
import type { Runtime } from '../../src/cli/runtime.ts'
import type { Otel } from '../../src/otel/start.ts'
import { createLog } from '../../src/telemetry/log.ts'
import type { EndedRequest } from '../../src/telemetry/request-sink.ts'
import { until, within } from '../support/deadline.ts'
import { type OtlpReceiver, otlpReceiver } from '../support/otlp-receiver.ts'
import { startSluiceRig } from '../support/sluice-rig.ts'
import { decisionOf, good } from '../telemetry/rig.ts'

let receiver: OtlpReceiver
beforeEach(async () => {
  receiver = await otlpReceiver()
})
afterEach(async () => {
  await receiver.close()
  vi.unstubAllEnvs()
})

const lines: string[] = []
const log = createLog({
  destination: { write: (line: string) => void lines.push(line) },
  nowMs: () => performance.now(),
})
const nobody = { fleet: { replica: () => undefined } } as unknown as Runtime

function stub(env: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const all = { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${receiver.url}/v1/traces`, ...env }
  for (const [name, value] of Object.entries(all)) vi.stubEnv(name, value)
  return all
}

async function open(env: Readonly<Record<string, string>>): Promise<Otel> {
  lines.splice(0)
  const otel = await openOtel(stub(env), log, () => nobody)
  if (otel === undefined) throw new Error(lines.join(''))
  return otel
}

function request(): EndedRequest {
  const settlement = good()
  const attempts = [{ spanId: 'a'.repeat(16), attempt: 1, replicaId: 'r1', sentAtMs: 5 } as const]
  const ids = { traceId: 'b'.repeat(32), spanId: 'c'.repeat(16) }
  const trace = { ...ids, sampled: true, path: '/x', arrivedAtMs: 0, attempts }
  return { settlement, exchange: { status: 200, trace }, decisions: [decisionOf(settlement.offer)] }
}

describe('a collector', () => {
  it('that never answers delays no request', async () => {
    receiver.manner = 'silent'
    const env = stub({ OTEL_BSP_SCHEDULE_DELAY: '1', OTEL_EXPORTER_OTLP_TIMEOUT: '200' })
    const rig = await startSluiceRig({ env })
    for (let sent = 0; sent < 5; sent++) {
      const client = rig.chat()
      ;(await rig.engine.nextRequest()).head().tokens(2).done()
      await client.waitComplete()
      expect(client.status).toBe(200)
    }
    await until(() => receiver.requests > 0, 'an export')
    await rig.close()
    expect(receiver.spans).toEqual([])
  })

  it('that is slow leaves at most a queue and a batch of spans in memory', async () => {
    const otel = await open({ OTEL_BSP_MAX_QUEUE_SIZE: '16', OTEL_BSP_MAX_EXPORT_BATCH_SIZE: '8' })
    for (let ended = 0; ended < 1000; ended++) otel.sink.ended(request())
    await otel.close(5000)
    expect(receiver.spans.length).toBeGreaterThan(8)
    expect(receiver.spans.length).toBeLessThanOrEqual(16 + 8)
  })

  it('that refuses is told of in the log, and not once for each batch', async () => {
    receiver.manner = 'refuses'
    const otel = await open({ OTEL_BSP_MAX_EXPORT_BATCH_SIZE: '5', OTEL_BSP_SCHEDULE_DELAY: '1' })
    for (let batch = 1; batch <= 40; batch++) {
      otel.sink.ended(request())
      await until(() => receiver.requests >= batch, `batch ${batch}`)
    }
    await otel.close(5000)
    const told = lines.filter((line) => line.includes('otel_trouble'))
    expect(told.length).toBeGreaterThan(0)
    expect(told.length).toBeLessThan(30)
    expect(told[0]).toContain('Bad Request')
  })

  it('that never answers holds the end of the process only so long', async () => {
    receiver.manner = 'silent'
    const otel = await open({})
    otel.sink.ended(request())
    await within(otel.close(20), 'the end', 8000)
    expect(receiver.spans).toEqual([])
  })
})

describe('settings that can’t be used', () => {
  it('are lines of the log, and Sluice goes on without', async () => {
    lines.splice(0)
    const env = stub({ OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' })
    expect(await openOtel(env, log, () => nobody)).toBeUndefined()
    expect(lines.join('')).toMatch(/"level":"warn".*otel_setting|otel_setting.*grpc is not spoken here/s)
  })
})
