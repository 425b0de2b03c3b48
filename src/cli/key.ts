/** `sluice key`: a new key for a tenant, and the hash that the configuration holds instead of it. */
import { createHash, randomBytes } from 'node:crypto'
import { Command, InvalidArgumentError, Option } from 'commander'
import { LABEL_NAME } from '../config/fields.ts'
import { systemTerminal, type Terminal } from './terminal.ts'

/** 256 bits: nothing to guess, and no salt needed for its hash. */
const KEY_BYTES = 32

const EXAMPLES = `
Examples:
  sluice key                                  the key on stderr, the line for the file on stdout
  sluice key --tenant acme >> tenants.yaml    a whole tenant
  sluice key --stdin < old-key.txt            the hash of a key that exists already
`

interface KeyOptions {
  readonly tenant?: string
  readonly stdin: boolean
  readonly format: 'text' | 'json'
}

export function keyCommand(terminal: Terminal = systemTerminal): Command {
  return new Command('key')
    .description('make a key for a tenant, with the hash that the file wants')
    .option('--tenant <name>', 'print a whole tenant for the file', tenantName)
    .option('--stdin', 'read the key from stdin instead of making one', false)
    .addOption(new Option('--format <format>', 'how to print').choices(['text', 'json']).default('text'))
    .addHelpText('after', EXAMPLES)
    .action(async (options: KeyOptions) => {
      const key = options.stdin ? (await terminal.readStdin()).trim() : newKey()
      if (key === '') throw new Error('no key came in on stdin')
      const hash = createHash('sha256').update(key).digest('hex')
      if (options.format === 'json') {
        const made = options.stdin ? {} : { key }
        terminal.out(`${JSON.stringify({ tenant: options.tenant, ...made, key_sha256: hash })}\n`)
        return
      }
      if (!options.stdin) terminal.err(`Give this key to the client; it is shown this once:\n\n  ${key}\n\n`)
      terminal.out(
        options.tenant === undefined ? `key_sha256: ["${hash}"]\n` : tenantLines(options.tenant, hash),
      )
    })
}

function newKey(): string {
  return `sk-sluice-${randomBytes(KEY_BYTES).toString('base64url')}`
}

function tenantName(value: string): string {
  if (LABEL_NAME.test(value)) return value
  throw new InvalidArgumentError('A tenant has letters, digits, . _ and -, 63 at most.')
}

function tenantLines(tenant: string, hash: string): string {
  return `  - name: ${tenant}\n    key_sha256: ["${hash}"]\n`
}
