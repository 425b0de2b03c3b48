/** Lets a few of each kind of line through per stretch of time and counts the others. */
import { LRUCache } from 'lru-cache'
import type { Ms } from '../core/units.ts'

interface Window {
  startAtMs: Ms
  passed: number
  leftOut: number
}

const WINDOW_MS: Ms = 10_000
const PER_WINDOW_LINES = 5
/** Kinds kept in mind; the least recent is forgotten. */
const MAX_KINDS = 500

export class RateLimit {
  readonly #windows = new LRUCache<string, Window>({ max: MAX_KINDS })

  /** `leftOut`: how many of this kind were not let through since the last one that was. */
  take(key: string, nowMs: Ms): { readonly pass: boolean; readonly leftOut: number } {
    const found = this.#windows.get(key)
    const window = found ?? { startAtMs: nowMs, passed: 0, leftOut: 0 }
    if (found === undefined) this.#windows.set(key, window)
    if (nowMs - window.startAtMs >= WINDOW_MS || nowMs < window.startAtMs) {
      window.startAtMs = nowMs
      window.passed = 0
    }
    if (window.passed >= PER_WINDOW_LINES) {
      window.leftOut++
      return { pass: false, leftOut: 0 }
    }
    window.passed++
    const { leftOut } = window
    window.leftOut = 0
    return { pass: true, leftOut }
  }
}
