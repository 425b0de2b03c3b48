/** `sluice explain`: one request's story, as the running Sluice remembers it. */
import { Command, Option } from 'commander'
import pc from 'picocolors'
import { camelCased } from '../admin/key-case.ts'
import type { RingEntry } from '../telemetry/decision-ring.ts'
import { type AdminAddress, adminOptions, fetchStory } from './admin-client.ts'
import { storyText } from './explain-text.ts'
import { systemTerminal, type Terminal } from './terminal.ts'

interface Flags extends AdminAddress {
  readonly format: 'text' | 'json'
}

const EXAMPLES = `
Examples:
  sluice explain 4f6c1d9e                 the id is what the answer has as x-request-id
  sluice explain 4f6c1d9e --format json   the records themselves

Exit code: 0 told, 1 not held any more or no answer.
SLUICE_ADMIN_TOKEN is wanted where the file sets \`admin.token\`.
`

export function explainCommand(terminal: Terminal = systemTerminal): Command {
  const command = new Command('explain')
    .description('tell one request’s story: what was decided, on what numbers, and how it ended')
    .argument('<request-id>', 'as in the answer’s `x-request-id`')
    .addOption(
      new Option('--format <format>', 'json: the records themselves')
        .choices(['text', 'json'])
        .default('text'),
    )
    .addHelpText('after', EXAMPLES)
    .action(async (requestId: string, flags: Flags) => {
      const story = await fetchStory(flags, requestId)
      if (story === undefined) {
        terminal.err(
          `nothing is held of ${requestId}: it never came here, waits still, or is no longer among the last that are kept; the log has a line with that request_id\n`,
        )
        terminal.exitWith(1)
        return
      }
      if (flags.format === 'json') terminal.out(`${JSON.stringify(story, null, 2)}\n`)
      else terminal.out(storyText(camelCased(story) as RingEntry, pc.createColors(terminal.colors)))
    })
  for (const option of adminOptions()) command.addOption(option)
  return command
}
