/** Names code by its contents, so that a result is remembered only as long as what made it stays the same. */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'

const STATIC_IMPORT = /^(?:import|export)\b[^'"]*?from ['"](\.{1,2}\/[^'"]+)['"]/gm

/** Every file that these files (URLs) import, directly or through others, and themselves; sorted. */
export function closureOf(roots) {
  const found = new Set()
  const pending = [...roots]
  for (let file = pending.pop(); file !== undefined; file = pending.pop()) {
    const { href } = new URL(file)
    if (found.has(href)) continue
    found.add(href)
    const text = readFileSync(new URL(href), 'utf8')
    for (const [, target] of text.matchAll(STATIC_IMPORT)) pending.push(new URL(target, href).href)
  }
  return [...found].sort()
}

/** Digest of all code behind these files, and of further texts. */
export function codeDigest(roots, ...texts) {
  const hash = createHash('sha256')
  for (const file of closureOf(roots)) hash.update(readFileSync(new URL(file)))
  for (const text of texts) hash.update(text)
  return hash.digest('hex').slice(0, 16)
}
