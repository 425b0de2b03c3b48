/** Holds the figure of leaving clients to its word: it is of all who left, or there is none. */
import { describe, expect, it } from 'vitest'
import { delayFigure, type Instants } from '../../bench/memory/delays.ts'

const left: Instants = Array.from({ length: 200 }, (_, index) => [`m${index}`, 1000 + index])
const ended: Instants = left.map(([id, atMs], index) => [id, atMs + 1 + (index < 3 ? 200 : 0)])

describe('the figure of clients that leave', () => {
  it('is the 99th percentile of all of them, in any order', () => {
    const figure = delayFigure('in its stream', 200, left, [...ended].reverse())
    expect(figure).toMatchObject({ value: 201, unit: 'ms', limit: 100 })
    expect(figure.note).toBe('p50 1.0, most 201.0, 200 clients')
  })

  it('takes an end that a coarser clock puts before the leaving for one at once', () => {
    expect(delayFigure('while it waits', 1, [['m1', 1000.4]], [['m1', 1000]]).value).toBe(0)
  })

  it('is none where the end of one of them was not seen', () => {
    expect(() => delayFigure('while it waits', 200, left, ended.slice(3))).toThrow(
      'a client that leaves while it waits: 200 left and 197 of them were seen to end, of 200',
    )
  })

  it('is none where one of them had gone before', () => {
    expect(() => delayFigure('while it waits', 200, left.slice(1), ended)).toThrow('199 left')
  })
})
