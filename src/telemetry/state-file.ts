/** Keeps the error budget over a restart: the attainment snapshot in a file, written whole or not at all. */
import { readFile, rename, rm, writeFile } from 'node:fs/promises'
import type { Ms } from '../core/units.ts'
import type { Attainment } from '../slo/attainment.ts'

interface StateFile {
  readonly savedAtUnixMs: Ms
  readonly attainment: unknown
}

/** Writes the state at `unixMs` beside the file and renames it over. Rejects when the folder can't be written. */
export async function saveSloState(
  path: string,
  attainment: Attainment,
  nowMs: Ms,
  unixMs: Ms,
): Promise<void> {
  const state: StateFile = { savedAtUnixMs: unixMs, attainment: attainment.snapshot(nowMs) }
  const fresh = `${path}.${process.pid}.tmp`
  try {
    await writeFile(fresh, JSON.stringify(state), { mode: 0o600 })
    await rename(fresh, path)
  } finally {
    await rm(fresh, { force: true })
  }
}

/**
 * Adds what the file holds to `attainment`. False when there is no file yet. Throws a RangeError that says what to do
 * when it holds something else; nothing has been added then.
 */
export async function loadSloState(
  path: string,
  attainment: Attainment,
  nowMs: Ms,
  unixMs: Ms,
): Promise<boolean> {
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw error
  })
  if (text === undefined) return false
  const state = parsed(text)
  if (state === undefined)
    throw new RangeError(`${path} is no SLO state; remove it to start with a full budget`)
  attainment.restore(state.attainment, Math.max(0, unixMs - state.savedAtUnixMs), nowMs)
  return true
}

function parsed(text: string): StateFile | undefined {
  try {
    const value = JSON.parse(text) as Partial<StateFile> | null
    return typeof value?.savedAtUnixMs === 'number' ? (value as StateFile) : undefined
  } catch {
    return undefined
  }
}
