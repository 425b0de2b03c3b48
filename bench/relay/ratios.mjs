/** What a peer's work costs, and how many times that of others in the same passes. */
import { median } from './stats.mjs'

const WORKS = [
  ['a streamed chunk', 'usPerChunk'],
  ['a request of 2 KiB', 'usPerRequest'],
  ['a request of 64 KiB', 'usPerLargeRequest'],
]

/**
 * By kind of work: the peer's CPU in µs, and its ratio to each other peer whose CPU was taken. Each has its `typical`
 * value (the median over passes, the ratio of two medians) and the `least` and `most` of a single pass.
 */
export function costsBeside(name, rows) {
  const taken = rows.filter(({ usPerChunk }) => usPerChunk !== undefined)
  const others = [...new Set(taken.map(({ peer }) => peer))].filter((peer) => peer !== name)
  const byPass = (peer, key) =>
    new Map(taken.filter((row) => row.peer === peer).map((row) => [row.pass, row[key]]))
  return WORKS.map(([work, key]) => {
    const own = byPass(name, key)
    const typicalUs = median([...own.values()])
    const ratios = others.map((peer) => {
      const theirs = byPass(peer, key)
      const each = [...own].map(([pass, us]) => us / theirs.get(pass))
      return { peer, ...range(each, typicalUs / median([...theirs.values()])) }
    })
    return { work, us: range([...own.values()], typicalUs), ratios }
  })
}

const range = (values, typical) => ({ typical, least: Math.min(...values), most: Math.max(...values) })
