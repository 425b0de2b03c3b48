/** Keeps the SLO windows over a restart in `slo.state_file`: restored at start, saved every minute and at the end. */
import type { Attainment } from '../slo/attainment.ts'
import type { Log } from '../telemetry/log.ts'
import { loadSloState, saveSloState } from '../telemetry/state-file.ts'

export interface SloState {
  /** Stops the timer and saves once more. */
  close(): Promise<void>
}

const SAVE_EVERY_MS = 60_000

/** Without a path it keeps nothing. A file that can't be read or written is a warning, never a reason not to serve. */
export async function openSloState(
  path: string | undefined,
  attainment: Attainment,
  log: Log,
): Promise<SloState> {
  if (path === undefined) return { close: async () => {} }
  try {
    const found = await loadSloState(path, attainment, performance.now(), Date.now())
    if (found) log.line('info', 'slo_state_restored', { path })
  } catch (error) {
    log.line('warn', 'slo_state_unreadable', {
      path,
      error: String(error),
      advice: 'the windows start empty',
    })
  }
  const save = () =>
    saveSloState(path, attainment, performance.now(), Date.now()).catch((error: unknown) =>
      log.often('slo_state', 'error', 'slo_state_not_saved', { path, error: String(error) }),
    )
  const timer = setInterval(() => void save(), SAVE_EVERY_MS)
  timer.unref()
  return {
    close() {
      clearInterval(timer)
      return save()
    },
  }
}
