/** Bytes gone wrong: cut, doubled, swapped, overwritten, with pieces that parsers stumble over. */
import fc from 'fast-check'

interface Mutation {
  readonly kind: 'overwrite' | 'insert' | 'remove' | 'repeat' | 'truncate'
  readonly at: number
  readonly length: number
  readonly bytes: Buffer
}

/** Seeds and numbers of runs come from outside for a longer hunt: `FUZZ_SEED=7 FUZZ_RUNS=20000`. */
export const FUZZ = {
  seed: Number(process.env.FUZZ_SEED ?? 20_260_801),
  runs: (ordinary: number) => ({ seed: FUZZ.seed, numRuns: Number(process.env.FUZZ_RUNS ?? ordinary) }),
}

/** A few mutations of a text; `pieces` are what the parser at hand finds interesting. */
export function anyMutations(pieces: readonly string[], most = 6): fc.Arbitrary<readonly Mutation[]> {
  const bytes = fc.oneof(
    fc.uint8Array({ minLength: 1, maxLength: 6 }).map((array) => Buffer.from(array)),
    fc.constantFrom(...pieces).map((piece) => Buffer.from(piece)),
  )
  const mutation = fc.record<Mutation>({
    kind: fc.constantFrom('overwrite', 'insert', 'remove', 'repeat', 'truncate'),
    at: fc.nat({ max: 1 << 20 }),
    length: fc.integer({ min: 1, max: 60 }),
    bytes,
  })
  return fc.array(mutation, { minLength: 1, maxLength: most })
}

export function mutated(bytes: Buffer, mutations: readonly Mutation[]): Buffer {
  return mutations.reduce((current, { kind, at, length, bytes: piece }) => {
    const from = current.length === 0 ? 0 : at % current.length
    const head = current.subarray(0, from)
    const tail = current.subarray(from)
    switch (kind) {
      case 'overwrite':
        return Buffer.concat([head, piece, tail.subarray(piece.length)])
      case 'insert':
        return Buffer.concat([head, piece, tail])
      case 'remove':
        return Buffer.concat([head, tail.subarray(length)])
      case 'repeat':
        return Buffer.concat([head, tail.subarray(0, length), tail])
      case 'truncate':
        return at % 4 === 0 ? head : current
      default:
        return kind satisfies never
    }
  }, bytes)
}
