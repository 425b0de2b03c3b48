/** A chaos run of a few seconds; `npm run test:chaos` goes on for minutes. */
import { expect, it } from 'vitest'
import { checkLaws } from './laws.ts'
import { runChaos, SHORT_PACE } from './run.ts'

it('keeps every law while replicas, pages, clients and files go wrong under twice the load', {
  timeout: 180_000,
}, async () => {
  const options = { durationMs: 4000, seed: 3, load: 2, pace: SHORT_PACE, capacityPerSec: 40 }
  const laws = checkLaws(await runChaos(options))
  expect(laws.filter(({ broken }) => broken.length > 0)).toEqual([])
})
