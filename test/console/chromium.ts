/** Finds and starts the Chromium of this machine; tests without one are skipped, loudly. */
import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'
import { type Browser, chromium } from 'playwright-core'

const NAMES = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable']

/** The browser to test with: `CHROMIUM`, else the first on the path; undefined when there is none. */
export const CHROMIUM = process.env.CHROMIUM ?? onPath(NAMES)

if (CHROMIUM === undefined) {
  console.warn(
    'SKIPPED: no Chromium. `apt-get install chromium`, or name one: CHROMIUM=/path npm run test:console',
  )
}

export async function startChromium(): Promise<Browser> {
  if (CHROMIUM === undefined) throw new Error('no Chromium')
  // The sandbox wants rights that containers rarely give; the pages are our own.
  return await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox', '--disable-gpu'] })
}

function onPath(names: readonly string[]): string | undefined {
  const folders = (process.env.PATH ?? '').split(delimiter)
  return names.flatMap((name) => folders.map((folder) => join(folder, name))).find(runs)
}

function runs(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}
