/** Small frames leave at once, also while the client's kernel holds back its acknowledgement of the one before. */
import { afterEach, expect, it } from 'vitest'
import { until } from '../support/deadline.ts'
import { type Rig, startRig } from '../support/edge-rig.ts'
import type { RawClient } from '../support/raw-client.ts'
import type { ScriptedExchange } from '../support/scripted-engine.ts'

let rig: Rig
afterEach(() => rig.close())

/** Half of what the kernels of today hold an acknowledgement back for, at least: 40 ms on Linux. */
const AT_ONCE_MS = 20
/** One that is quick is enough: a busy machine makes some late, a frame that waits for an acknowledgement makes all. */
const MOST_TURNS = 40

/** How long the client waits for a frame, in ms. */
async function delayOf(client: RawClient, exchange: ScriptedExchange, text: string): Promise<number> {
  const sentAtMs = performance.now()
  exchange.token(text)
  await until(() => client.received.includes(text), `the frame ${text}`)
  return performance.now() - sentAtMs
}

it('no frame behind the first content waits for an acknowledgement of the one before', async () => {
  rig = await startRig()
  // The second request on a connection makes it interactive: from there on kernels hold acknowledgements back.
  const client = rig.client()
  let quickest = Number.POSITIVE_INFINITY
  for (let turn = 0; turn < MOST_TURNS && quickest >= AT_ONCE_MS; turn++) {
    client.send({ body: { model: 'tiny', stream: true, messages: [] } })
    const exchange = (await rig.engine.nextRequest()).head()
    await delayOf(client, exchange, `first-${turn};`)
    const second = await delayOf(client, exchange, `second-${turn};`)
    const third = await delayOf(client, exchange, `third-${turn};`)
    if (turn > 0) quickest = Math.min(quickest, Math.max(second, third))
    exchange.done()
    await rig.settled(turn + 1)
  }
  expect(quickest).toBeLessThan(AT_ONCE_MS)
})
