/** `sluice init`: writes a commented configuration to start from. */
import { writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { Command } from 'commander'
import { STARTER } from './starter.ts'
import { systemTerminal, type Terminal } from './terminal.ts'

const EXAMPLES = `
Examples:
  sluice init                 writes sluice.yaml
  sluice init -o - | less     only shows it
`

export function initCommand(terminal: Terminal = systemTerminal): Command {
  return new Command('init')
    .description('write a commented configuration to start from')
    .option('-o, --output <file>', 'where to; - for stdout', 'sluice.yaml')
    .addHelpText('after', EXAMPLES)
    .action(async ({ output }: { output: string }) => {
      if (output === '-') return terminal.out(STARTER)
      await writeNew(output)
      terminal.out(
        `${output} is written. Put your engine into \`models\`, then:\n\n  sluice validate ${output}\n  sluice serve -c ${output}\n`,
      )
    })
}

/** Throws instead of overwriting. */
async function writeNew(path: string): Promise<void> {
  try {
    await writeFile(path, STARTER, { flag: 'wx' })
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined
    if (code === 'EEXIST')
      throw new Error(`${path} exists already and is left alone; choose another name with -o`)
    if (code === 'ENOENT')
      throw new Error(`there is no folder ${dirname(path)}; make it, or choose another with -o`)
    throw error
  }
}
