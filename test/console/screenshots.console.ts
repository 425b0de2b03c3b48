/** Takes pictures of the console: both themes at two widths, of the same staged quarter of an hour. Those in docs/ are renewed with PICTURES=docs/console. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type ServedAdmin, serveAdmin } from '../support/admin-stage.ts'
import { CHROMIUM, startChromium } from './chromium.ts'
import { stagedPorts } from './stage.ts'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
/** Whole pages, as PNG, to be looked at. */
const FOLDER = `${ROOT}.bench/console`
/** Their upper part, as small WebP, for the docs; only when it is named. */
const { PICTURES } = process.env
const SIZES = { wide: { width: 1280, shownHeight: 1190 }, narrow: { width: 400, shownHeight: 1300 } } as const
const WEBP_QUALITY = 0.82

describe.skipIf(CHROMIUM === undefined)('pictures of the console', () => {
  let browser: Browser
  let stage: ServedAdmin

  beforeAll(async () => {
    for (const folder of [FOLDER, PICTURES]) if (folder !== undefined) mkdirSync(folder, { recursive: true })
    stage = await serveAdmin(stagedPorts())
    browser = await startChromium()
  })
  afterAll(async () => {
    await browser?.close()
    await stage?.close()
  })

  it.each(
    (['light', 'dark'] as const).flatMap((theme) =>
      Object.entries(SIZES).map(([name, size]) => [theme, name, size] as const),
    ),
  )('%s, %s', async (theme, name, { width, shownHeight }) => {
    const page = await browser.newPage({ viewport: { width, height: shownHeight }, colorScheme: theme })
    await page.goto(stage.url)
    await page.locator('#link', { hasText: 'live' }).waitFor()
    await page.screenshot({ path: `${FOLDER}/${name}-${theme}.png`, fullPage: true })
    if (PICTURES !== undefined) {
      const webp = await asWebp(browser, await page.screenshot())
      writeFileSync(`${PICTURES}/${name}-${theme}.webp`, webp)
    }
    expect(await page.locator('#charts path.area').count()).toBeGreaterThan(0)
    await page.close()
  })
})

/** The browser itself writes the smaller format. */
async function asWebp(browser: Browser, png: Buffer): Promise<Buffer> {
  const blank = await browser.newPage()
  const script = `(async () => {
    const image = new Image()
    image.src = 'data:image/png;base64,${png.toString('base64')}'
    await image.decode()
    const canvas = document.createElement('canvas')
    Object.assign(canvas, { width: image.width, height: image.height })
    canvas.getContext('2d').drawImage(image, 0, 0)
    return canvas.toDataURL('image/webp', ${WEBP_QUALITY}).split(',')[1]
  })()`
  const base64 = String(await blank.evaluate(script))
  await blank.close()
  return Buffer.from(base64, 'base64')
}
