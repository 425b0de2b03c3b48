/** Keys of `top`. */
import { describe, expect, it } from 'vitest'
import { FIRST_VIEW, press, SECTIONS, type TopView } from '../../src/cli/top-view.ts'
import type { Key } from '../../src/cli/tty.ts'

const COLUMNS = 3
const named = (...names: string[]): Key[] => names.map((name) => ({ name, sequence: name }))
const pressed = (keys: readonly Key[], view: TopView = FIRST_VIEW) =>
  keys.reduce((state, key) => press(state, key, COLUMNS), view)

describe('keys', () => {
  it('walk through the sections', () => {
    const focused = [0, 1, 2, 3].map((times) => pressed(named(...Array<string>(times).fill('tab'))).focus)
    expect(focused).toEqual([...SECTIONS, SECTIONS[0]])
  })

  it('sort the section in focus by each column and then as it comes, each section by itself', () => {
    const columns = [1, 2, 3, 4].map(
      (times) => pressed(named(...Array<string>(times).fill('s'))).sorting.promises.column,
    )
    expect(columns).toEqual([0, 1, 2, undefined])
    const view = pressed(named('s', 'tab', 's', 's', 'r'))
    expect(view.sorting.promises).toEqual({ column: 0, reversed: false })
    expect(view.sorting.replicas).toEqual({ column: 1, reversed: true })
    expect(pressed(named('r', 'r')).sorting.promises.reversed).toBe(false)
  })

  it('type a filter, in which other keys are letters', () => {
    const typing = pressed([{ sequence: '/' }, ...named('q', 's', '2')])
    expect(typing).toMatchObject({ filter: 'qs2', typing: true, ended: false })
    expect(pressed(named('backspace', 'return'), typing)).toMatchObject({ filter: 'qs', typing: false })
    expect(pressed(named('escape'), typing)).toMatchObject({ filter: '', typing: false })
    expect(pressed([{ sequence: '\u0001' }, { name: 'up', sequence: '\u001b[A' }], typing).filter).toBe('qs2')
    expect(pressed(named('return', 'escape'), typing).filter).toBe('')
  })

  it('scroll, pause, show help and end', () => {
    expect(pressed(named('down', 'j', 'up')).scrolled).toBe(1)
    expect(pressed(named('up')).scrolled).toBe(0)
    expect(pressed(named('down', 'tab')).scrolled).toBe(0)
    expect(pressed(named('space')).paused).toBe(true)
    expect(pressed(named('space', 'p')).paused).toBe(false)
    expect(pressed([{ sequence: '?' }]).helping).toBe(true)
    expect(pressed(named('q')).ended).toBe(true)
    expect(pressed([{ name: 'c', ctrl: true }]).ended).toBe(true)
    expect(pressed([{ sequence: '/' }, { name: 'c', ctrl: true }]).ended).toBe(true)
    expect(pressed(named('x'))).toEqual(FIRST_VIEW)
  })
})
