/** The console in a real browser: loads clean, keeps itself up to date, works by keyboard, and is sound for assistive tools. */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Browser, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { type ServedAdmin, serveAdmin } from '../support/admin-stage.ts'
import { CHROMIUM, startChromium } from './chromium.ts'
import { type LiveSluice, startLiveSluice } from './live-sluice.ts'
import { stagedPorts } from './stage.ts'

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const CLASSES = 'auth: none\nclasses: { chat: { ttft: 5s, objective: 99% } }\ndefault_class: chat\n'
const ENFORCE = `mode: enforce\n${CLASSES}`
const SHADOW = `mode: shadow\n${CLASSES}`
const TOKEN = 'a-token-of-at-least-some-length'

/** What makes the page wider than its window. */
const TOO_WIDE = `[...document.body.querySelectorAll('*')]
  .filter((part) => document.documentElement.scrollWidth > innerWidth && !part.closest('.scroll') &&
    part.getBoundingClientRect().right > innerWidth + 1)
  .map((part) => part.outerHTML.slice(0, 120))`

interface AxeResult {
  readonly violations: readonly {
    readonly id: string
    readonly help: string
    readonly nodes: readonly { readonly html: string; readonly failureSummary?: string }[]
  }[]
}

let browser: Browser
const faults: string[] = []
const open: Page[] = []

/** A page whose console lines and failed loads are faults. */
async function visit(url: string, options: Parameters<Browser['newPage']>[0] = {}): Promise<Page> {
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 }, ...options })
  open.push(page)
  page.on('console', (line) => {
    if (line.type() === 'error' || line.type() === 'warning') faults.push(line.text())
  })
  page.on('pageerror', (error) => faults.push(String(error)))
  page.on('requestfailed', (request) => {
    // Closing a page ends its stream.
    if (!request.url().includes('/live')) faults.push(`${request.url()} ${request.failure()?.errorText}`)
  })
  await page.goto(url)
  return page
}

const isLive = (page: Page) => page.locator('#link', { hasText: 'live' }).waitFor()

describe.skipIf(CHROMIUM === undefined)('the console in Chromium', () => {
  beforeAll(async () => {
    browser = await startChromium()
  })
  afterAll(() => browser?.close())
  afterEach(async () => {
    for (const page of open.splice(0)) await page.close()
    expect(faults.splice(0)).toEqual([])
  })

  describe('before a Sluice that runs', () => {
    let sluice: LiveSluice
    beforeAll(async () => {
      sluice = await startLiveSluice(ENFORCE)
    })
    afterAll(() => sluice?.close())

    it('shows a request by itself, and not a word of it', async () => {
      const page = await visit(sluice.adminUrl)
      await isLive(page)
      expect(await page.title()).toBe('Sluice')
      expect(await sluice.request('seen-in-console')).toBe(200)
      await page.locator('#promises th', { hasText: 'chat' }).waitFor()
      await page.locator('[id="d-seen-in-console"]', { hasText: 'Kept its promise' }).waitFor()
      expect(await page.content()).not.toContain('must never be shown')
    })

    it('keeps what a reader has opened, and holds the list while it is read', async () => {
      const page = await visit(sluice.adminUrl)
      await isLive(page)
      await sluice.request('opened')
      const item = page.locator('[id="d-opened"]')
      await item.locator('summary').click()
      await sluice.request('later')
      await page.locator('.held').waitFor()
      expect(await page.locator('[id="d-later"]').count()).toBe(0)
      await page.mouse.move(0, 0)
      await page.evaluate('document.activeElement?.blur()')
      await page.locator('[id="d-later"]').waitFor()
      expect(await item.locator('details').getAttribute('open')).not.toBeNull()
      expect(await item.locator('dd').first().textContent()).toBe('opened')
    })

    it('can be paused and goes on', async () => {
      const page = await visit(sluice.adminUrl)
      await isLive(page)
      await page.getByRole('button', { name: 'Pause' }).press('Enter')
      const clock = await page.locator('#state time').textContent()
      // Whatever another page shows has been sent to this one too.
      const other = await visit(sluice.adminUrl)
      await sluice.request('while-paused')
      await other.locator('[id="d-while-paused"]').waitFor()
      expect(await page.locator('#state time').textContent()).toBe(clock)
      expect(await page.locator('[id="d-while-paused"]').count()).toBe(0)
      await page.getByRole('button', { name: 'Go on' }).click()
      await page.locator('[id="d-while-paused"]').waitFor()
    })

    it('marks a reload among what happened', async () => {
      const page = await visit(sluice.adminUrl)
      await isLive(page)
      await sluice.reload(SHADOW)
      await page
        .locator('#events li', { hasText: /^[\d:]+ configuration Configuration \w+ in force: / })
        .waitFor()
      await page.locator('#state .mode', { hasText: 'shadow' }).waitFor()
      await sluice.request('in-shadow')
      await page.locator('[id="d-in-shadow"] em', { hasText: 'Enforcing would have sent it' }).waitFor()
    })
  })

  it('says when the connection is lost, and comes back', async () => {
    const first = await serveAdmin(stagedPorts())
    const page = await visit(first.url)
    await isLive(page)
    await first.close()
    await page.locator('#link', { hasText: 'lost' }).waitFor()
    expect(await page.locator('#say').textContent()).toContain('connection is lost')
    const again = await serveAdmin(stagedPorts(), Number(new URL(first.url).port))
    await isLive(page)
    await page.close()
    await again.close()
    // The browser writes a line for each try that found nobody.
    expect(faults.splice(0).filter((line) => !line.includes('ERR_'))).toEqual([])
  })

  describe('with a past', () => {
    let stage: ServedAdmin
    beforeAll(async () => {
      stage = await serveAdmin(stagedPorts())
    })
    afterAll(() => stage?.close())

    it.each([
      ['light', 1280],
      ['dark', 1280],
      ['light', 400],
      ['dark', 400],
    ] as const)(
      'has nothing that an accessibility checker objects to (%s, %i wide)',
      async (theme, width) => {
        const page = await visit(stage.url, { colorScheme: theme, viewport: { width, height: 900 } })
        await isLive(page)
        await page.locator('details summary').first().click()
        await page.evaluate(AXE)
        const { violations } = (await page.evaluate('axe.run()')) as AxeResult
        expect(
          violations.map(
            ({ id, help, nodes }) => `${id}: ${help}: ${nodes[0]?.html} ${nodes[0]?.failureSummary}`,
          ),
        ).toEqual([])
      },
    )

    it('never scrolls sideways as a whole', async () => {
      for (const width of [1280, 800, 400, 320]) {
        const page = await visit(stage.url, { viewport: { width, height: 900 } })
        const scrolled = await page.evaluate('document.documentElement.scrollWidth')
        expect([scrolled, await page.evaluate(TOO_WIDE)]).toEqual([width, []])
      }
    })

    it('moves one time cursor through all charts, by keyboard and by pointer', async () => {
      const page = await visit(stage.url)
      await isLive(page)
      const good = page.locator('#charts figure').first().locator('[data-line="0"]')
      const newest = await good.textContent()
      const slider = page.getByRole('slider', { name: 'Time' })
      await slider.focus()
      await page.keyboard.press('Home')
      expect(await slider.getAttribute('aria-valuetext')).toMatch(
        /^\d\d:\d\d:\d\d: good .+\/s, missed .+, refused/,
      )
      await page.keyboard.press('PageUp')
      expect(await page.locator('.cursor[visibility="visible"]').count()).toBe(5)
      await page.keyboard.press('End')
      expect(await good.textContent()).toBe(newest)
      expect(await slider.getAttribute('aria-valuetext')).toMatch(/^now: /)
      const box = await page.locator('#charts .plot').first().boundingBox()
      if (box === null) throw new Error('no chart')
      await page.mouse.move(box.x + box.width / 3, box.y + box.height / 2)
      expect(await page.getByRole('slider').inputValue()).toBe('60')
    })

    it('is reached by keyboard alone, past its head', async () => {
      const page = await visit(stage.url)
      await page.keyboard.press('Tab')
      expect(await page.evaluate('document.activeElement?.textContent')).toBe('Skip to the numbers')
      await page.keyboard.press('Enter')
      expect(new URL(page.url()).hash).toBe('#main')
      const focused = new Set<string>()
      for (let press = 0; press < 12; press++) {
        await page.keyboard.press('Tab')
        focused.add(String(await page.evaluate(`document.activeElement?.getAttribute('aria-label')`)))
      }
      expect(focused).toContain('How each promise is kept')
    })

    it('is whole without scripts', async () => {
      const page = await visit(stage.url, { javaScriptEnabled: false })
      expect(await page.locator('#headline').textContent()).toMatch(/error budget/)
      expect(await page.locator('#promises tbody tr').count()).toBe(5)
      expect(await page.locator('#replicas tbody tr').count()).toBe(4)
      expect(await page.locator('#charts figure').count()).toBe(5)
      expect(await page.getByRole('button', { name: 'Pause' }).isVisible()).toBe(false)
      await page.getByRole('link', { name: 'refused' }).click()
      expect(await page.locator('#decisions .why').first().textContent()).toMatch(/^Refused: /)
    })

    it('keeps the theme that was chosen', async () => {
      const page = await visit(stage.url, { colorScheme: 'light' })
      const ground = () => page.evaluate('getComputedStyle(document.body).backgroundColor')
      const light = await ground()
      await page.getByRole('link', { name: 'dark' }).click()
      expect(await ground()).not.toBe(light)
      await page.getByRole('link', { name: '1h' }).click()
      expect(await page.locator('html').getAttribute('data-theme')).toBe('dark')
    })
  })

  it('shows decisions to whoever has the token, and hides them again', async () => {
    const stage = await serveAdmin(stagedPorts({ token: () => TOKEN }))
    const page = await visit(stage.url)
    await isLive(page)
    expect(await page.locator('#decisions .why').count()).toBe(0)
    await page.getByLabel('Admin token').fill(TOKEN)
    await page.getByRole('button', { name: 'Show decisions' }).click()
    await page.locator('#decisions .why').first().waitFor()
    await isLive(page)
    expect(await page.locator('#decisions .why').count()).toBe(10)
    expect(await page.evaluate('document.cookie')).toBe('')
    await page.getByRole('button', { name: 'Hide decisions' }).click()
    await page.getByLabel('Admin token').waitFor()
    await page.close()
    await stage.close()
  })
})
