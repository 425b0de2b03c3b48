#!/usr/bin/env node
/** The `sluice` command. */
import { runCli } from './program.ts'
import { systemTerminal } from './terminal.ts'

// A reader that has seen enough (`| head`) is no fault.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  process.exit(error.code === 'EPIPE' ? 0 : 1)
})

await runCli(process.argv.slice(2), systemTerminal)
