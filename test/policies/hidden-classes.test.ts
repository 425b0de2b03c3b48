/**
 * Decisions leave no hidden classes behind. V8 up to Node 20 makes new ones each time that a literal begins with a
 * spread and adds members to it: a hundred times slower, and whatever reads those objects is compiled again and again.
 */
import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'

const SCRIPT = fileURLToPath(new URL('./hidden-classes.mjs', import.meta.url))
const LIMIT_MS = 60_000

/** Lines of V8's log about hidden classes while that many requests were decided. */
async function changes(requests: number): Promise<number> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-maps-'))
  try {
    const file = join(folder, 'v8.log')
    const logging = ['--log-maps', `--logfile=${file}`, '--no-logfile-per-isolate']
    const args = [...logging, SCRIPT, String(requests)]
    await promisify(execFile)(process.execPath, args, { timeout: LIMIT_MS })
    return (await readFile(file, 'latin1')).split('\n').filter((line) => line.startsWith('map,')).length
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

describe('hidden classes', () => {
  it(
    'do not grow in number with the requests decided',
    async () => {
      const [few, many] = await Promise.all([changes(200), changes(700)])
      expect(few).toBeGreaterThan(0)
      expect(many - few).toBeLessThan(50)
    },
    LIMIT_MS,
  )
})
