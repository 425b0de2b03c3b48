/** Changes of the file are seen however it was written. */
import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { type Watch, watchConfig } from '../../src/config/watch.ts'

let folder: string
let watch: Watch | undefined
let changes = 0

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-watch-'))
  changes = 0
})

afterEach(async () => {
  await watch?.close()
  await rm(folder, { recursive: true })
})

async function start(path: string): Promise<void> {
  watch = watchConfig({ path, onChange: () => changes++ })
  await watch.ready
}

const seen = (count: number) =>
  vi.waitFor(() => expect(changes, 'changes seen').toBe(count), { timeout: 10_000, interval: 10 })

describe('the watch', () => {
  it('sees a file written in place and one renamed over it', async () => {
    const path = join(folder, 'sluice.yaml')
    await writeFile(path, 'one')
    await start(path)
    await writeFile(path, 'two')
    await seen(1)
    await writeFile(`${path}.new`, 'three')
    await rename(`${path}.new`, path)
    await seen(2)
  })

  it('sees a ConfigMap whose folder is swapped', async () => {
    for (const [name, text] of [
      ['v1', 'one'],
      ['v2', 'two'],
    ] as const) {
      await mkdir(join(folder, name))
      await writeFile(join(folder, name, 'sluice.yaml'), text)
    }
    await symlink('v1', join(folder, '..data'))
    await symlink(join('..data', 'sluice.yaml'), join(folder, 'sluice.yaml'))
    await start(join(folder, 'sluice.yaml'))
    await symlink('v2', join(folder, '..data_tmp'))
    await rename(join(folder, '..data_tmp'), join(folder, '..data'))
    await seen(1)
  })

  it('takes the same bytes for no change', async () => {
    const path = join(folder, 'sluice.yaml')
    await writeFile(path, 'one')
    await start(path)
    await writeFile(path, 'one')
    await writeFile(path, 'two')
    await seen(1)
    await writeFile(path, 'two')
    await writeFile(path, 'three')
    await seen(2)
  })

  it('says nothing after it was closed', async () => {
    const path = join(folder, 'sluice.yaml')
    await writeFile(path, 'one')
    await start(path)
    await writeFile(path, 'two')
    await watch?.close()
    const before = changes
    await writeFile(path, 'three')
    // A second watch that sees the last change shows that the first had the time to see it too.
    const other = watchConfig({ path, onChange: () => changes++ })
    await other.ready
    await writeFile(path, 'four')
    await seen(before + 1)
    await other.close()
  })
})
