/** DNS discovery: addresses followed, failures survived. */
import { afterEach, beforeEach, expect, it } from 'vitest'
import { type Discovery, startDiscovery } from '../../src/upstream/discovery.ts'
import { ManualClock } from '../support/manual-clock.ts'

let clock: ManualClock
let answer: () => readonly string[]
let sets: (readonly string[])[]
let troubles: (string | undefined)[]
let discovery: Discovery

async function turn(spanMs: number): Promise<void> {
  clock.advance(spanMs)
  for (let index = 0; index < 5; index += 1) await Promise.resolve()
}
beforeEach(async () => {
  clock = new ManualClock()
  sets = []
  troubles = []
  answer = () => ['10.0.0.2', '10.0.0.1', '10.0.0.1']
  discovery = startDiscovery({
    host: 'vllm.svc',
    resolve: async () => answer(),
    clock,
    onAddresses: (addresses) => sets.push(addresses),
    onTrouble: (message) => troubles.push(message),
  })
  await turn(0)
})
afterEach(() => {
  discovery.close()
  expect(clock.pending).toBe(0)
})

it('resolves at once and tells a set only when it changes', async () => {
  expect(sets).toEqual([['10.0.0.1', '10.0.0.2']])
  await turn(10_000)
  answer = () => ['10.0.0.2']
  await turn(10_000)
  expect(sets).toEqual([['10.0.0.1', '10.0.0.2'], ['10.0.0.2']])
})

it('keeps the last set while the resolver fails or answers nothing, and says so once', async () => {
  answer = () => {
    throw new Error('SERVFAIL')
  }
  await turn(10_000)
  await turn(1000)
  answer = () => []
  await turn(1000)
  expect(sets).toHaveLength(1)
  expect(troubles).toEqual(["vllm.svc can't be resolved: SERVFAIL"])
  answer = () => ['10.0.0.9']
  await turn(1000)
  expect(sets.at(-1)).toEqual(['10.0.0.9'])
  expect(troubles.at(-1)).toBeUndefined()
})
