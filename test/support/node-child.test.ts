/** What a probed process holds is told with what its own children hold, which live and end as without the probe. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { NodeChild, probedArgs } from './node-child.ts'

const TIMERS = 50
const PARENT = `
import { fork } from 'node:child_process'
const child = fork(new URL('./child.mjs', import.meta.url))
child.on('message', (told) => process.stderr.write(JSON.stringify(told) + '\\n'))
`
/** Its channel is all that keeps it up. */
const CHILD = `
globalThis.timers = Array.from({ length: ${TIMERS} }, () => setTimeout(() => {}, 1e8).unref())
process.on('message', () => {})
process.once('disconnect', () => process.exit())
process.send('up')
`

let folder: string
let parent: NodeChild

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-probe-'))
  await writeFile(join(folder, 'child.mjs'), CHILD)
  await writeFile(join(folder, 'parent.mjs'), PARENT)
  parent = new NodeChild({ args: probedArgs(join(folder, 'parent.mjs')), name: 'parent', folder })
})

afterAll(async () => {
  await parent.end()
  await rm(folder, { recursive: true })
})

it('sums what a probed process and its children hold', async () => {
  await parent.said(/"up"/)
  const { processes, timers, heapBytes } = await parent.holdings()
  expect(processes).toBe(2)
  expect(timers).toBeGreaterThanOrEqual(TIMERS)
  expect(heapBytes).toBeGreaterThan(2_000_000)
  // The child has heard and answered the probe, and lives on.
  expect((await parent.holdings()).processes).toBe(2)
})
