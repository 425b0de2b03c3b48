/** Against a plain map in order of use: the same blocks, the same holders, the same bound. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { HeldBlocks } from '../../src/estimate/held-blocks.ts'

const HOLDERS = [{ name: 'r1' }, { name: 'r2' }, { name: 'r3' }]
const MAX_BLOCKS = 5
type Holder = (typeof HOLDERS)[number]

/** What it should be: maps keep the order in which keys came. */
class PlainBlocks {
  readonly blocks = new Map<string, Map<Holder, number>>()

  use(hash: string, holder: Holder, at: number): void {
    const holders = this.blocks.get(hash) ?? new Map<Holder, number>()
    this.blocks.delete(hash)
    const [oldest] = this.blocks.keys()
    if (this.blocks.size >= MAX_BLOCKS && oldest !== undefined) this.blocks.delete(oldest)
    this.blocks.set(hash, holders.set(holder, at))
  }

  drop(hash: string, holder: Holder): void {
    const holders = this.blocks.get(hash)
    if (holders?.delete(holder) && holders.size === 0) this.blocks.delete(hash)
  }

  forget(holder: Holder): void {
    for (const [hash, holders] of this.blocks) {
      if (holders.delete(holder) && holders.size === 0) this.blocks.delete(hash)
    }
  }
}

const step = fc.record({
  hash: fc.constantFrom(...'abcdefghij'),
  holder: fc.constantFrom(...HOLDERS),
  does: fc.constantFrom('use', 'use', 'use', 'use', 'use', 'use', 'drop', 'drop', 'forget'),
})

describe('held blocks', () => {
  it('are those used last, each with its holders and when they used it', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
        const kept = new HeldBlocks<Holder>(MAX_BLOCKS)
        const plain = new PlainBlocks()
        for (const [at, { hash, holder, does }] of steps.entries()) {
          for (const blocks of [kept, plain]) {
            if (does === 'forget') blocks.forget(holder)
            if (does === 'use') blocks.use(hash, holder, at)
          }
          const place = kept.find(hash)
          if (does === 'drop' && place !== undefined) kept.drop(place, holder)
          if (does === 'drop') plain.drop(hash, holder)
          expect(kept.size).toBe(plain.blocks.size)
          for (const one of 'abcdefghij') expect(held(kept, one)).toEqual([...(plain.blocks.get(one) ?? [])])
        }
      }),
    )
  })

  it('grow to as many as they may be', () => {
    const kept = new HeldBlocks<Holder>(5000)
    const [holder = { name: '' }] = HOLDERS
    for (let i = 0; i < 6000; i++) kept.use(`${i}`, holder, i)
    expect(kept.size).toBe(5000)
    expect(held(kept, '999')).toEqual([])
    expect(held(kept, '1000')).toEqual([[holder, 1000]])
    expect(held(kept, '5999')).toEqual([[holder, 5999]])
  })
})

function held(blocks: HeldBlocks<Holder>, hash: string) {
  const place = blocks.find(hash)
  if (place === undefined) return []
  return blocks.holdersAt(place).map((holder) => [holder, blocks.usedAt(place, holder)])
}
