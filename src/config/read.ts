/** Reads a configuration file from the disk; a file that can't be read is a problem like any other. */
import { createReadStream } from 'node:fs'
import { text } from 'node:stream/consumers'
import { MAX_FILE_BYTES } from './document.ts'
import { type LoadOptions, type LoadResult, loadConfig } from './load.ts'
import type { Problem } from './problem.ts'

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  EACCES: 'the file may not be read by this user',
  EISDIR: 'this is a directory',
}

/** The text of the file (or as much of it as shows that it is too large), or why there is none. Never rejects. */
export async function readConfigText(path: string): Promise<string | Problem> {
  try {
    return await text(createReadStream(path, { end: MAX_FILE_BYTES }))
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'an unknown fault'
    const message = REASONS[code] ?? `the file can't be read (${code})`
    const advice = code === 'ENOENT' ? { suggestion: `run \`sluice init -o ${path}\` to start one` } : {}
    return { severity: 'error', file: path, line: 1, column: 1, path: '', message, ...advice }
  }
}

/** Reads and loads; problems name the file by its path. Never rejects. */
export async function readConfig(path: string, options: Omit<LoadOptions, 'fileName'>): Promise<LoadResult> {
  const read = await readConfigText(path)
  if (typeof read !== 'string') return { ok: false, problems: [read] }
  return loadConfig(read, { ...options, fileName: path })
}
