/** Engines that answer each request with an error: each of them is found out, though a request fails on both alike. */
import { afterEach, expect, it } from 'vitest'
import { type SluiceRig, startSluiceRig } from '../support/sluice-rig.ts'

/** Faults in a row that open a breaker. */
const FAULTS = 5

let rig: SluiceRig
afterEach(() => rig.close())

it('are all behind their breakers after five requests each', async () => {
  rig = await startSluiceRig({ engines: 2 })
  for (const engine of rig.engines) engine.on('/v1/chat/completions', (exchange) => exchange.refuse(500))
  const { fleet } = rig.running.runtime
  const states = () => fleet.reports().map(({ state }) => state)
  for (let sent = 0; sent < 2 * FAULTS; sent += 1) {
    expect(states()).not.toEqual(['down', 'down'])
    const client = await rig.chat().waitStatus(502)
    client.leave()
  }
  expect(states()).toEqual(['down', 'down'])
})
