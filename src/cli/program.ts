/** Knows every command by name and loads only the one that is asked for, so that `validate` never waits for a server. */
import { Command, CommanderError } from 'commander'
import { packageVersion, type Terminal } from './terminal.ts'

interface CommandEntry {
  readonly name: string
  readonly summary: string
  /** Not listed in help. */
  readonly hidden?: boolean
  load(terminal: Terminal): Promise<Command>
}

export const COMMANDS: readonly CommandEntry[] = [
  {
    name: 'demo',
    summary: 'two equal simulated fleets under the same rising load: one bare, one behind Sluice',
    load: async (terminal) => (await import('./demo.ts')).demoCommand(terminal),
  },
  {
    name: 'serve',
    summary: 'serve traffic as the file says',
    load: async (terminal) => (await import('./serve.ts')).serveCommand(terminal),
  },
  {
    name: 'load',
    summary: 'send open-loop load by class to an OpenAI-compatible address; report goodput and percentiles',
    load: async (terminal) => (await import('./load.ts')).loadCommand(terminal),
  },
  {
    name: 'engine',
    summary: 'run a simulated vLLM server: its scheduler, its API and its metrics, without a GPU',
    load: async (terminal) => (await import('./engine.ts')).engineCommand(terminal),
  },
  {
    name: 'simulate',
    summary: 'run a workload against a simulated fleet in virtual time, schedulers side by side',
    load: async (terminal) => (await import('./simulate.ts')).simulateCommand(terminal),
  },
  {
    name: 'replay',
    summary: 'what another configuration would have done with the requests of a log',
    load: async (terminal) => (await import('./replay.ts')).replayCommand(terminal),
  },
  {
    name: 'top',
    summary: 'watch promises, replicas and decisions of a running Sluice in the terminal',
    load: async (terminal) => (await import('./top.ts')).topCommand(terminal),
  },
  {
    name: 'explain',
    summary: 'tell one request’s story: what was decided, on what numbers, and how it ended',
    load: async (terminal) => (await import('./explain.ts')).explainCommand(terminal),
  },
  {
    name: 'validate',
    summary: 'check configuration files and show what they say',
    load: async (terminal) => (await import('./validate.ts')).validateCommand(terminal),
  },
  {
    name: 'init',
    summary: 'write a commented configuration to start from',
    load: async (terminal) => (await import('./init.ts')).initCommand(terminal),
  },
  {
    name: 'key',
    summary: 'make a key for a tenant, with the hash that the file wants',
    load: async (terminal) => (await import('./key.ts')).keyCommand(terminal),
  },
  {
    name: 'export',
    summary: 'write alert rules, SLO definitions and dashboards for other tools',
    load: async (terminal) => (await import('./export.ts')).exportCommand(terminal),
  },
  {
    name: 'schema',
    summary: 'print the JSON Schema of the configuration, for editors',
    load: async (terminal) => (await import('./schema.ts')).schemaCommand(terminal),
  },
  {
    name: 'healthcheck',
    summary: 'ask the admin port of a running Sluice whether it lives',
    load: async (terminal) => (await import('./healthcheck.ts')).healthcheckCommand(terminal),
  },
  {
    name: 'docs',
    summary: 'write the generated pages and files of this repository',
    hidden: true,
    load: async (terminal) => (await import('./docs.ts')).docsCommand(terminal),
  },
]

const EXAMPLES = `
Start here:
  sluice demo                      what it does, in two minutes, without a GPU
  sluice init -o sluice.yaml       a commented file, in shadow mode
  sluice validate sluice.yaml      every problem at once, with line and column
  sluice serve -c sluice.yaml
`

/** Runs one command line; the exit code goes to the terminal. Never rejects. */
export async function runCli(args: readonly string[], terminal: Terminal): Promise<void> {
  try {
    const program = await createProgram(args, terminal)
    if (args.length === 0) program.outputHelp()
    else await program.parseAsync(args, { from: 'user' })
  } catch (error) {
    if (error instanceof CommanderError) return terminal.exitWith(error.exitCode === 0 ? 0 : 2)
    terminal.err(`sluice: ${error instanceof Error ? error.message : String(error)}\n`)
    terminal.exitWith(1)
  }
}

async function createProgram(args: readonly string[], terminal: Terminal): Promise<Command> {
  const program = new Command('sluice')
    .description('A streaming reverse proxy that keeps LLM servers inside their latency promises.')
    .version(packageVersion(), '-V, --version')
    .configureOutput({
      writeOut: (text) => terminal.out(text),
      writeErr: (text) => terminal.err(text),
      getOutHasColors: () => terminal.colors,
    })
    .showHelpAfterError('(add --help for usage and examples)')
    .exitOverride()
    .addHelpText('after', EXAMPLES)
  const asked = args.find((arg) => !arg.startsWith('-') && arg !== 'help')
  for (const entry of COMMANDS) {
    const command =
      entry.name === asked ? await entry.load(terminal) : new Command(entry.name).description(entry.summary)
    inherit(command, program)
    program.addCommand(command, { hidden: entry.hidden ?? false })
  }
  return program
}

/** Output, exit codes and manners of the program for a command that was made by itself. */
function inherit(command: Command, parent: Command): void {
  command.copyInheritedSettings(parent)
  for (const child of command.commands) inherit(child, command)
}
