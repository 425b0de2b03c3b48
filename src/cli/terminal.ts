/** What a command may use of the process it runs in; tests hand in their own. */
import { readFileSync } from 'node:fs'
import { text } from 'node:stream/consumers'
import pc from 'picocolors'

/** 0 done and sound, 1 a check failed, 2 the command was not understood. */
export type ExitCode = 0 | 1 | 2

export interface Terminal {
  /** Results. */
  out(text: string): void
  /** Remarks beside the results. */
  err(text: string): void
  readStdin(): Promise<string>
  /** The same as it comes, for what may be large; default: that of the process. */
  readonly stdin?: AsyncIterable<Uint8Array>
  readonly env: Readonly<Record<string, string | undefined>>
  /** Whether results may be coloured: a terminal, and no NO_COLOR. */
  readonly colors: boolean
  /** The code that the process ends with once nothing is left to do. */
  exitWith(code: ExitCode): void
}

export const systemTerminal: Terminal = {
  out: (chunk) => void process.stdout.write(chunk),
  err: (chunk) => void process.stderr.write(chunk),
  readStdin: () => text(process.stdin),
  env: process.env,
  colors: pc.isColorSupported,
  exitWith: (code) => {
    process.exitCode = code
  },
}

/** The version of the installed package. */
export function packageVersion(): string {
  const manifest: unknown = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))
  return typeof manifest === 'object' && manifest !== null && 'version' in manifest
    ? String(manifest.version)
    : 'unknown'
}
