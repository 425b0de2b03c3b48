/** Remembers results by what they were made from: the job and the code that ran it. One JSON line each, appended. */
import { createHash } from 'node:crypto'
import { appendFileSync, existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

const digest = (text) => createHash('sha256').update(text).digest('hex').slice(0, 24)

/** Digest of all compiled code and scripts under these folders. */
export function digestOf(folders) {
  const hash = createHash('sha256')
  for (const folder of folders) {
    for (const name of readdirSync(folder, { recursive: true, encoding: 'utf8' }).sort()) {
      if (/\.m?js$/.test(name)) hash.update(name).update(readFileSync(join(folder, name)))
    }
  }
  return hash.digest('hex').slice(0, 16)
}

/** Opens the file, made when it is absent; a torn last line is left out. */
export function openCache(file) {
  mkdirSync(dirname(file), { recursive: true })
  const known = new Map()
  for (const line of existsSync(file) ? readFileSync(file, 'utf8').split('\n') : []) {
    try {
      const { key, result } = JSON.parse(line)
      known.set(key, result)
    } catch {}
  }
  return {
    get: (parts) => known.get(digest(JSON.stringify(parts))),
    put(parts, result) {
      const key = digest(JSON.stringify(parts))
      known.set(key, result)
      appendFileSync(file, `${JSON.stringify({ key, result })}\n`)
    },
  }
}
