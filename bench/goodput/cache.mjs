/** Remembers results by what they were made from: the job and the code that ran it. One JSON line each, appended. */
import { createHash } from 'node:crypto'
import { appendFileSync, existsSync, mkdirSync, readFileSync } from 'node:fs'
import { dirname } from 'node:path'

const keyOf = (parts) => createHash('sha256').update(JSON.stringify(parts)).digest('hex').slice(0, 24)

/** Opens the file, made when it is absent; a torn line is left out and ended, so that the next one is whole. */
export function openCache(file) {
  mkdirSync(dirname(file), { recursive: true })
  const text = existsSync(file) ? readFileSync(file, 'utf8') : ''
  if (text !== '' && !text.endsWith('\n')) appendFileSync(file, '\n')
  const known = new Map()
  for (const line of text.split('\n')) {
    try {
      const { key, result } = JSON.parse(line)
      known.set(key, result)
    } catch {}
  }
  return {
    get: (parts) => known.get(keyOf(parts)),
    put(parts, result) {
      const key = keyOf(parts)
      known.set(key, result)
      appendFileSync(file, `${JSON.stringify({ key, result })}\n`)
    },
  }
}
