/** `sluice top` of the built program in a real terminal: draws, obeys keys, follows the size, leaves the screen as it was. */
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type LiveSluice, startLiveSluice } from './live-sluice.ts'
import { HAS_TMUX, TmuxScreen } from './tmux.ts'

const BINARY = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))

describe.skipIf(!HAS_TMUX)('sluice top under tmux', () => {
  let sluice: LiveSluice
  let screen: TmuxScreen
  beforeAll(async () => {
    sluice = await startLiveSluice(
      'mode: enforce\nauth: none\nclasses: { chat: { ttft: 5s, objective: 99% } }\ndefault_class: chat\n',
    )
    await sluice.request('seen-in-top')
    // What stands on the screen after it has ended is looked at too.
    const command = `${process.execPath} ${BINARY} top --url ${sluice.adminUrl} --every 200ms; echo ended with $?; exec cat`
    screen = new TmuxScreen(120, 30, command, { TERM: 'screen-256color' })
  })
  afterAll(async () => {
    screen?.close()
    await sluice?.close()
  })

  it('shows promises, replicas and decisions, and takes the whole screen', async () => {
    const text = await screen.shows('seen-in-top')
    expect(text).toMatch(/^chat +too few/m)
    expect(text).toMatch(/^tiny-1 .* live/m)
    expect(text).toContain('q quit')
    expect([screen.fact('alternate_on'), screen.fact('cursor_flag')]).toEqual(['1', '0'])
  })

  it('is kept up to date', async () => {
    await sluice.request('came-later')
    await screen.shows('came-later')
  })

  it('obeys keys', async () => {
    screen.keys('?')
    await screen.shows('sort it by the next column')
    screen.keys('?', 'Tab')
    await screen.shows('replicas: tab next')
    screen.keys('/', 't', 'i', 'n', 'y', '-', '2')
    await screen.shows('filter: tiny-2_')
    screen.keys('Enter')
    const text = await screen.shows('filter “tiny-2”')
    expect(text).toMatch(/^tiny-2 /m)
    expect(text).not.toMatch(/^tiny-1 /m)
    screen.keys('Escape')
    await screen.shows(/^tiny-1 /m)
  })

  it('follows the size of the terminal', async () => {
    await screen.shows('GAUGES')
    screen.resize(60, 14)
    const text = await screen.shows((shown) => shown.includes('REPLICA') && !shown.includes('GAUGES'))
    expect(text.trimEnd().split('\n').length).toBeLessThanOrEqual(14)
    screen.resize(140, 40)
    await screen.shows('GAUGES')
  })

  it('gives the screen back', async () => {
    screen.keys('q')
    await screen.shows('ended with 0')
    expect([screen.fact('alternate_on'), screen.fact('cursor_flag')]).toEqual(['0', '1'])
    expect(screen.text()).not.toContain('REPLICA')
  })
})
