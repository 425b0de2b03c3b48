/** `sluice schema`: the JSON Schema of the configuration. */
import { Command } from 'commander'
import { configJsonSchema } from '../config/json-schema.ts'
import { systemTerminal, type Terminal } from './terminal.ts'

const EXAMPLES = `
Examples:
  sluice schema > sluice.schema.json

Editors with the YAML language server use it when this is the first line of the file:
  # yaml-language-server: $schema=./sluice.schema.json
`

export function schemaCommand(terminal: Terminal = systemTerminal): Command {
  return new Command('schema')
    .description('print the JSON Schema of the configuration, for editors')
    .addHelpText('after', EXAMPLES)
    .action(() => terminal.out(schemaText()))
}

/** The schema as it stands in a file. */
export function schemaText(): string {
  return `${JSON.stringify(configJsonSchema(), undefined, 2)}\n`
}
