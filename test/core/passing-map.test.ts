/** A map for what comes and goes: it does what a Map does, and lets go of what has gone. */
import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { PassingMap } from '../../src/core/passing-map.ts'

interface Entries {
  set(key: number, value: unknown): unknown
  delete(key: number): boolean
}

const KIB = 1024
const PASSED = 20_000
const PASSED_BYTES = PASSED * KIB

function oldSpaceBytes(): number {
  return getHeapSpaceStatistics().find(({ space_name }) => space_name === 'old_space')?.space_used_size ?? 0
}

/** What objects of a KiB each that pass through leave behind in the old space, where two are in the map at a time. */
function leftBehindBytes(map: Entries): number {
  setFlagsFromString('--expose-gc')
  const gc = runInNewContext('gc') as (options?: { type: 'minor' }) => void
  map.set(-1, {})
  // Whatever lives now gets old, the map's own table too.
  for (let nth = 0; nth < 2; nth++) gc()
  const before = oldSpaceBytes()
  for (let nth = 0; nth < PASSED; nth++) {
    map.set(nth, new Array(KIB / 8).fill(nth))
    map.delete(nth - 2)
    if (nth % 2000 === 1999) gc({ type: 'minor' })
  }
  return oldSpaceBytes() - before
}

describe('PassingMap', () => {
  it('holds what a Map holds, in the same order', () => {
    const change = fc.tuple(fc.constantFrom('set', 'set', 'delete'), fc.nat(40), fc.nat())
    fc.assert(
      fc.property(fc.array(change, { maxLength: 600, size: 'max' }), (changes) => {
        const passing = new PassingMap<number, number>()
        const plain = new Map<number, number>()
        for (const [kind, key, value] of changes) {
          if (kind === 'set') {
            passing.set(key, value)
            plain.set(key, value)
          } else expect(passing.delete(key)).toBe(plain.delete(key))
          expect(passing.get(key)).toBe(plain.get(key))
        }
        expect([...passing]).toEqual([...plain])
        expect([...passing.keys()]).toEqual([...plain.keys()])
        expect(passing.size).toBe(plain.size)
      }),
    )
  })

  it('leaves out what is deleted while it is iterated', () => {
    const map = new PassingMap<number, number>()
    for (let key = 0; key < 500; key++) map.set(key, key)
    const seen: number[] = []
    for (const key of map.keys()) {
      seen.push(key)
      map.delete(key + 1)
    }
    expect(seen).toEqual(Array.from({ length: 250 }, (_, nth) => 2 * nth))
  })

  it('keeps nothing alive that has passed through', () => {
    expect(leftBehindBytes(new PassingMap<number, unknown>())).toBeLessThan(PASSED_BYTES / 20)
  })
})
