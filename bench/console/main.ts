/** Measures what open consoles cost: CPU of the admin port with ten viewers less that without any, under steady traffic. Run: npm run bench:console */
import { mkdtemp, rm } from 'node:fs/promises'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { NodeChild, scriptArgs } from '../../test/support/node-child.ts'
import { coreShare } from '../core-share.mjs'
import { type FleetSize, REQUESTS_PER_SEC, startStage } from './stage.ts'

const VIEWERS = 10
/** Share of one core that ten viewers may cost. */
const BUDGET_RATIO = 0.01
const SLICES = 8
const SLICE_MS = 2000
const SETTLING_MS = 2000
/** The first drawings are compiled. */
const WARMING_MS = 3000
const FLEETS: readonly FleetSize[] = [
  { name: 'usual', classes: 5, replicas: 8 },
  { name: 'large', classes: 20, replicas: 100 },
]

async function measure(fleet: FleetSize, folder: string) {
  const stage = await startStage(fleet)
  await sleep(SETTLING_MS)
  const without = await coreShare(SLICES, SLICE_MS)
  const args = scriptArgs(new URL('./viewers.ts', import.meta.url), stage.url, String(VIEWERS))
  const viewers = new NodeChild({ args, name: `viewers-${fleet.name}`, folder })
  await viewers.ask('joined')
  await sleep(WARMING_MS)
  const before = await viewers.ask<number>('bytes')
  const watched = await coreShare(SLICES, SLICE_MS)
  const bytes = (await viewers.ask<number>('bytes')) - before
  await viewers.end()
  await stage.close()
  return {
    ...fleet,
    withoutMedian: without.median,
    withViewersMedian: watched.median,
    costMedian: watched.median - without.median,
    costBest: watched.best - without.best,
    kbPerViewerPerSec: bytes / VIEWERS / watched.spanMs,
  }
}

const folder = await mkdtemp(join(tmpdir(), 'sluice-console-'))
const rows = []
try {
  for (const fleet of FLEETS) rows.push(await measure(fleet, folder))
} finally {
  await rm(folder, { recursive: true, force: true })
}
const show = (value: string | number) => (typeof value === 'number' ? Number(value.toPrecision(3)) : value)
console.log(`${VIEWERS} viewers, ${REQUESTS_PER_SEC} requests/s; shares of one core; budget ${BUDGET_RATIO}`)
console.table(
  rows.map((row) => Object.fromEntries(Object.entries(row).map(([name, value]) => [name, show(value)]))),
)
console.log(JSON.stringify({ viewers: VIEWERS, budgetRatio: BUDGET_RATIO, cores: cpus().length, rows }))
