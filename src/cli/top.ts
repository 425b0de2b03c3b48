/** `sluice top`: what the console shows, in a terminal. */
import { setTimeout as sleep } from 'node:timers/promises'
import { Command, InvalidArgumentError, Option } from 'commander'
import { camelCased } from '../admin/key-case.ts'
import type { Overview } from '../admin/overview/overview.ts'
import type { Ms } from '../core/units.ts'
import { type AdminAddress, adminOptions, fetchOverview } from './admin-client.ts'
import { durationOption, wholeArgument } from './load-options.ts'
import { systemTerminal, type Terminal } from './terminal.ts'
import { sortableColumns, topLines, topText } from './top-screen.ts'
import { FIRST_VIEW, press, type TopView } from './top-view.ts'
import { systemTty, type Tty } from './tty.ts'

interface Flags extends AdminAddress {
  readonly every: Ms
  readonly count?: number
  readonly filter: string
  readonly format: 'text' | 'json'
}

/** Width of plain output, where no terminal says one. */
const PLAIN_COLUMNS = 160

const EXAMPLES = `
Examples:
  sluice top                                       live; ? shows the keys, q ends it
  sluice top --url http://sluice-admin:9090
  sluice top | less                                once, as plain text
  sluice top --count 10 --every 30s >> watch.log   ten times, half a minute apart
  sluice top --format json | jq .total

SLUICE_ADMIN_TOKEN is wanted to see decisions where the file sets \`admin.token\`.
`

/** The command. `tty` is the terminal to draw on; without one the output is plain. */
export function topCommand(terminal: Terminal = systemTerminal, tty: Tty | undefined = systemTty()): Command {
  const command = new Command('top')
    .description('watch promises, replicas and decisions of a running Sluice in the terminal')
    .addOption(durationOption('--every <time>', 'time between two drawings', 2000))
    .option('--count <n>', 'end after so many (default: one when the output is no terminal)', countArgument)
    .option('--filter <text>', 'only rows with that text', '')
    .addOption(
      new Option('--format <format>', 'json: one object a line').choices(['text', 'json']).default('text'),
    )
    .addHelpText('after', EXAMPLES)
    .action(async (flags: Flags) => {
      if (tty === undefined || flags.format === 'json') await printPlain(flags, terminal)
      else await new LiveTop(flags, tty, terminal.colors).run()
    })
  for (const option of adminOptions()) command.addOption(option)
  return command
}

function countArgument(text: string): number {
  const count = wholeArgument(text)
  if (count === 0) throw new InvalidArgumentError('It must be at least 1.')
  return count
}

async function printPlain(flags: Flags, terminal: Terminal): Promise<void> {
  const view = { ...FIRST_VIEW, filter: flags.filter }
  const count = flags.count ?? 1
  for (let drawn = 0; drawn < count; drawn++) {
    if (drawn > 0) {
      await sleep(flags.every)
      if (flags.format === 'text') terminal.out('\n')
    }
    const told = await fetchOverview(flags)
    terminal.out(
      flags.format === 'json' ? `${JSON.stringify(told)}\n` : topText(read(told), view, PLAIN_COLUMNS),
    )
  }
}

/** What the admin port has told, in the words of the code. */
function read(told: unknown): Overview {
  return camelCased(told) as Overview
}

/** Draws, asks again, and obeys keys, until a key or the count ends it. */
class LiveTop {
  readonly #flags: Flags
  readonly #tty: Tty
  readonly #colors: boolean
  readonly #ended = new AbortController()
  #view: TopView
  #overview: Overview | undefined
  #trouble: string | undefined

  constructor(flags: Flags, tty: Tty, colors: boolean) {
    this.#flags = flags
    this.#tty = tty
    this.#colors = colors
    this.#view = { ...FIRST_VIEW, filter: flags.filter }
  }

  /** Rejects when there is no first answer: then there is nothing to show. */
  async run(): Promise<void> {
    this.#overview = read(await fetchOverview(this.#flags))
    const end = () => this.#ended.abort()
    process.once('SIGTERM', end)
    this.#tty.open(
      (key) => {
        const columns = this.#overview === undefined ? 0 : sortableColumns(this.#overview, this.#view)
        this.#view = press(this.#view, key, columns)
        if (this.#view.ended) end()
        else this.#draw()
      },
      () => this.#draw(),
    )
    try {
      await this.#loop()
    } finally {
      this.#tty.close()
      process.off('SIGTERM', end)
    }
  }

  async #loop(): Promise<void> {
    const { signal } = this.#ended
    this.#draw()
    for (let drawn = 1; drawn !== this.#flags.count && !signal.aborted; drawn++) {
      await sleep(this.#flags.every, undefined, { signal }).catch(() => undefined)
      if (signal.aborted || this.#view.paused) continue
      await this.#ask()
      this.#draw()
    }
  }

  async #ask(): Promise<void> {
    try {
      this.#overview = read(await fetchOverview(this.#flags))
      this.#trouble = undefined
    } catch (error) {
      this.#trouble = error instanceof Error ? error.message : String(error)
    }
  }

  #draw(): void {
    if (this.#overview === undefined || this.#ended.signal.aborted) return
    this.#tty.draw(topLines(this.#overview, this.#view, this.#tty, this.#colors, this.#trouble))
  }
}
