/** Waits for what is asked of other processes: each has a limit and says what it waits for. Tests have it too. */
import { setTimeout as sleep } from 'node:timers/promises'

/** Looks every `everyMs` until `look` gives something true, and returns that; throws after `limitMs`. */
export async function eventually(label, limitMs, look, everyMs = 50) {
  for (const giveUpAtMs = performance.now() + limitMs; ; await sleep(everyMs)) {
    const found = await look()
    if (found) return found
    if (performance.now() > giveUpAtMs) throw new Error(`waited ${limitMs} ms for ${label}`)
  }
}
