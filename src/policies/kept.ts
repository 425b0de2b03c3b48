/** Caches of what plans read: one for each scheduler's learnt state, so that two schedulers can live side by side. */
import type { Learnt } from './learnt.ts'

/** A cache by object; each `Learnt` has its own. Entries go with their keys. */
export function keptBy<K extends object, V>(): (learnt: Learnt) => WeakMap<K, V> {
  const caches = new WeakMap<Learnt, WeakMap<K, V>>()
  return (learnt) => {
    let cache = caches.get(learnt)
    if (cache === undefined) {
      cache = new WeakMap()
      caches.set(learnt, cache)
    }
    return cache
  }
}
