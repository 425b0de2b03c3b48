/** What `top` draws, in terminals of any size. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Overview, overview } from '../../src/admin/overview/overview.ts'
import { sortableColumns, topLines, topText } from '../../src/cli/top-screen.ts'
import { FIRST_VIEW, SECTIONS, type TopView } from '../../src/cli/top-view.ts'
import { setUp } from '../admin/admin-rig.ts'
import { offerOf, settlementOf } from '../slo/facts.ts'
import { agent, batch, chat, decisionOf, replicaOf } from '../telemetry/rig.ts'

function staged(): Overview {
  const waitingByClass = () => [{ class: 'agent', requests: 7, tokens: 9000, oldestMs: 2500 }]
  const { ports, observer, parts } = setUp({ waitingByClass })
  parts.replicas = Array.from({ length: 12 }, (_, index) =>
    replicaOf({
      id: `m-${index}`,
      name: `m-${index}`,
      state: index === 3 ? 'down' : 'live',
      ledger: { ...replicaOf().ledger, inFlightRequests: (index * 5) % 12 },
    }),
  )
  for (let index = 0; index < 90; index++) {
    const slo = [chat, agent, batch][index % 3] ?? chat
    const offer = offerOf(slo, { requestId: `request-${index}` })
    observer.onDecision(decisionOf(offer, { atMs: index }))
    observer.onSettled(settlementOf({ offer, ttftMs: index % 4 === 0 ? 5000 : 300, tpotMs: 30 }))
  }
  return overview(ports, true)
}

const all = staged()
const draw = (view: Partial<TopView> = {}, columns = 120, rows = 40) =>
  topLines(all, { ...FIRST_VIEW, ...view }, { columns, rows }, false)

describe('the screen', () => {
  it('is never wider or higher than the terminal, whatever is chosen', () => {
    const view = fc.record({
      focus: fc.constantFrom(...SECTIONS),
      scrolled: fc.nat(50),
      filter: fc.constantFrom('', 'm-1', 'agent', 'nothing has this', '\u001b[31m'),
      typing: fc.boolean(),
      paused: fc.boolean(),
      helping: fc.boolean(),
    })
    fc.assert(
      fc.property(
        view,
        fc.integer({ min: 20, max: 250 }),
        fc.integer({ min: 4, max: 80 }),
        (chosen, columns, rows) => {
          const lines = draw(chosen, columns, rows)
          expect(lines.length).toBeLessThanOrEqual(rows)
          expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(columns)
          expect(lines.join('')).not.toMatch(/\p{Cc}/u)
        },
      ),
    )
  })

  it('shows promises, replicas and decisions at once, and the headline', () => {
    const text = draw().join('\n')
    expect(text).toContain('11 of 12 replicas live')
    expect(text).toMatch(/chat +critical 1h\/5m/)
    expect(text).toMatch(/batch +no targets/)
    expect(draw({}, 160).join('\n')).toMatch(/agent.* 7 +2\.50 s/)
    expect(text).toMatch(/m-3 .*down/)
    expect(text).toMatch(/Held 2\.0 ms, then sent to r1/)
    expect(text.split('\n').at(-1)).toContain('q quit')
  })

  it('gives the section in focus the room', () => {
    const count = (focus: TopView['focus'], pattern: RegExp) =>
      draw({ focus }, 120, 24).filter((line) => pattern.test(line)).length
    const [replica, decision] = [/^m-\d+/, /^\d\d:\d\d:\d\d/]
    expect([count('replicas', replica), count('decisions', replica)]).toEqual([8, 3])
    expect([count('replicas', decision), count('decisions', decision)]).toEqual([3, 8])
  })

  it('sorts by the column that is chosen, both ways', () => {
    const flights = (reversed: boolean) => {
      const sorting = { ...FIRST_VIEW.sorting, replicas: { column: 2, reversed } }
      const rows = draw({ focus: 'replicas', sorting }, 160, 60).filter((line) => /^m-\d+/.test(line))
      return rows.map((line) => Number(line.split(/\s{2,}/)[3]))
    }
    const sorted = flights(false)
    expect(sorted).toEqual(sorted.toSorted((a, b) => b - a))
    expect(flights(true)).toEqual(sorted.toReversed())
    expect(sortableColumns(all, { ...FIRST_VIEW, focus: 'replicas' })).toBeGreaterThan(3)
  })

  it('filters rows by any text in them, and says when none has it', () => {
    const rows = draw({ filter: 'M-1', focus: 'replicas' }).filter((line) => /^m-\d+/.test(line))
    expect(rows.map((line) => line.split(' ')[0])).toEqual(['m-1', 'm-10', 'm-11'])
    expect(draw({ filter: 'zzz' }).join('\n')).toContain('none of 12 says “zzz”')
  })

  it('scrolls the section in focus to its end and no further', () => {
    const names = (scrolled: number) =>
      draw({ focus: 'replicas', scrolled }, 120, 20)
        .filter((line) => /^m-\d+/.test(line))
        .map((line) => line.split(' ')[0])
    expect(names(1)[0]).toBe('m-1')
    expect(names(50).at(-1)).toBe('m-11')
    expect(names(50)).toHaveLength(names(0).length)
  })

  it('leaves out the least important columns where there is little room', () => {
    expect(draw({}, 200).join('\n')).toContain('PERIOD')
    const narrow = draw({}, 60).join('\n')
    expect(narrow).not.toContain('PERIOD')
    expect(narrow).toMatch(/CLASS.*5 MIN/)
  })

  it('says when its numbers are old, when it is paused, and what the keys do', () => {
    const old = topLines(all, FIRST_VIEW, { columns: 120, rows: 30 }, false, 'no answer from there')
    expect(old.at(-1)).toMatch(/^OLD: no answer from there/)
    expect(draw({ paused: true }).at(-1)).toContain('PAUSED')
    expect(draw({ helping: true }).join('\n')).toContain('sort it by the next column')
  })

  it('says that decisions are guarded', () => {
    const text = topText({ ...all, decisions: null }, FIRST_VIEW, 120)
    expect(text).toContain('set SLUICE_ADMIN_TOKEN')
  })
})

describe('plain text', () => {
  it('holds every row, without a colour', () => {
    const text = topText(all, FIRST_VIEW, 160)
    expect(text.match(/^m-\d+/gm)).toHaveLength(12)
    expect(text.match(/^\d\d:\d\d:\d\d /gm)).toHaveLength(30)
    expect(text).not.toContain('\u001b')
  })
})
