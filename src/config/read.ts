/** Reads a configuration file from the disk and loads it; a file that can't be read is a problem like any other. */
import { readFile } from 'node:fs/promises'
import { type LoadOptions, type LoadResult, loadConfig } from './load.ts'

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  EACCES: 'the file may not be read by this user',
  EISDIR: 'this is a directory',
}

/** `options.fileName` defaults to the path itself. Never rejects. */
export async function readConfig(
  path: string,
  options: Omit<LoadOptions, 'fileName'> & { readonly fileName?: string },
): Promise<LoadResult> {
  const fileName = options.fileName ?? path
  try {
    return loadConfig(await readFile(path, 'utf8'), { ...options, fileName })
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'an unknown fault'
    const message = REASONS[code] ?? `the file can't be read (${code})`
    const advice = code === 'ENOENT' ? { suggestion: `run \`sluice init -o ${fileName}\` to start one` } : {}
    return {
      ok: false,
      problems: [{ severity: 'error', file: fileName, line: 1, column: 1, path: '', message, ...advice }],
    }
  }
}
