/** A terminal that remembers what was written to it. */
import { Readable } from 'node:stream'
import { runCli } from '../../src/cli/program.ts'
import type { Terminal } from '../../src/cli/terminal.ts'

export interface Ran {
  readonly out: string
  readonly err: string
  readonly code: number
}

/** Runs one command line in this process. */
export async function run(
  args: readonly string[],
  options: { stdin?: string | Uint8Array; env?: Terminal['env'] } = {},
): Promise<Ran> {
  const ran = { out: '', err: '', code: 0 }
  await runCli(args, {
    out: (text) => {
      ran.out += text
    },
    err: (text) => {
      ran.err += text
    },
    readStdin: async () => String(options.stdin ?? ''),
    stdin: Readable.from([Buffer.from(options.stdin ?? '')]),
    env: options.env ?? {},
    colors: false,
    exitWith: (code) => {
      ran.code = code
    },
  })
  return ran
}
