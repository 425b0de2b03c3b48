/** Reads what sitecustomize.py wrote: how late a client's own event loop ran while its requests were under way. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** Above this p99 a client was too late for its figures to be the server's, as for `sluice load`. */
export const VALID_LAG_P99_MS = 5

const RESOLUTION_MS = 10

/** The 99th percentile of the lag between the two instants (Unix ms), over the processes of that name, in ms. */
export function lagP99Ms(folder, processName, fromMs, toMs) {
  const lags = readdirSync(folder)
    .filter((file) => file.startsWith(`${processName}.`))
    .flatMap((file) => readFileSync(join(folder, file), 'utf8').trim().split('\n'))
    .map((line) => line.split(' ').map(Number))
    .filter(([atMs]) => atMs >= fromMs && atMs <= toMs)
    .flatMap(([, lagMs]) => whatCameMeanwhile(lagMs))
    .sort((a, b) => a - b)
  if (lags.length === 0)
    throw new Error(`no look at the clock of ${processName} between ${fromMs} and ${toMs}`)
  return lags[Math.min(lags.length - 1, Math.floor(0.99 * lags.length))]
}

/** A stall counts for all that could have come during it: one of 35 ms is looks late by 35, 25, 15 and 5 ms. */
export function whatCameMeanwhile(lagMs) {
  return Array.from(
    { length: Math.floor(lagMs / RESOLUTION_MS) + 1 },
    (_, place) => lagMs - place * RESOLUTION_MS,
  )
}
