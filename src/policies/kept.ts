/** Caches of what plans read: one for each scheduler's learnt state, so that two schedulers can live side by side. */
import type { Learnt } from './learnt.ts'

let caches = 0

/** A cache by object; each `Learnt` has its own. Entries go with their keys. */
export function keptBy<K extends object, V>(): (learnt: Learnt) => WeakMap<K, V> {
  const nth = caches++
  // By index, not by another map: hot loops ask this for each stream.
  return ({ kept }) => {
    kept[nth] ??= new WeakMap()
    return kept[nth] as WeakMap<K, V>
  }
}
