/** `sluice engine`: a simulated vLLM server in real time, a process of its own. */
import { once } from 'node:events'
import { Command, InvalidArgumentError, Option } from 'commander'
import { type EngineServerOptions, type RunningEngine, startEngine } from '../emulator/start.ts'
import { profileIds } from '../sim/profiles.ts'
import { listenFault } from './listen.ts'
import { portArgument, positiveArgument, wholeArgument } from './load-options.ts'
import { systemTerminal, type Terminal } from './terminal.ts'

interface EngineFlags {
  readonly profile: string
  readonly port: number
  readonly host: string
  readonly servedModelName: readonly string[]
  readonly model?: string
  readonly maxNumSeqs?: number
  readonly maxNumBatchedTokens?: number
  readonly maxModelLen?: number
  readonly kvBlocks?: number
  readonly maxNumQueuedReqs?: number
  readonly maxNumQueuedTokens?: number
  readonly schedulingPolicy: 'fcfs' | 'priority'
  readonly apiKeyEnv?: string
  readonly seed: number
  readonly speed: number
  readonly listProfiles?: true
}

const EXAMPLES = `
Examples:
  sluice engine --port 8001                                          the slow profile of the demo
  sluice engine --profile Llama-3.1-8B/H100-80G-SXM/tp1 --port 8001 --served-model-name llama-3.1-8b
  sluice engine --profile demo/slow --port 8001 --max-num-queued-reqs 16
  sluice engine --list-profiles

SIGTERM lets streams finish and refuses new requests, as vLLM does with a shutdown timeout; a second one ends it now.
`

/** The command. */
export function engineCommand(terminal: Terminal = systemTerminal): Command {
  const names = new Option('--served-model-name <name...>', 'names that clients may ask for').default([
    'model',
  ])
  return new Command('engine')
    .description('run a simulated vLLM server: its scheduler, its API and its metrics, without a GPU')
    .option('--profile <id>', 'model, GPU and tensor parallelism that set its speed', 'demo/slow')
    .option('--port <number>', 'port to listen on; 0 takes a free one', portArgument, 8000)
    .option('--host <address>', 'address to listen on', '127.0.0.1')
    .addOption(names)
    .addOption(new Option('--model <name>', 'the same, for one name').hideHelp())
    .option('--max-num-seqs <count>', 'sequences in a batch', countArgument)
    .option('--max-num-batched-tokens <tokens>', 'token budget of a step', countArgument)
    .option('--max-model-len <tokens>', 'longest prompt plus answer', countArgument)
    .option('--kv-blocks <count>', 'KV blocks of 16 tokens', countArgument)
    .option('--max-num-queued-reqs <count>', 'refuse with 503 above that many requests', countArgument)
    .option('--max-num-queued-tokens <tokens>', 'refuse with 503 above that prefill backlog', countArgument)
    .addOption(new Option('--scheduling-policy <policy>').choices(['fcfs', 'priority']).default('fcfs'))
    .option('--api-key-env <name>', 'environment variable with the key that /v1 wants')
    .option('--seed <number>', 'of step jitter, answer lengths and words', wholeArgument, 1)
    .option('--speed <times>', 'run that many times as fast as the profile', positiveArgument, 1)
    .option('--list-profiles', 'print every profile id and end')
    .addHelpText('after', EXAMPLES)
    .action(async (flags: EngineFlags) => {
      if (flags.listProfiles) terminal.out(`${profileIds().join('\n')}\n`)
      else await run(serverOptions(flags, terminal), terminal)
    })
}

function serverOptions(flags: EngineFlags, terminal: Terminal): EngineServerOptions {
  const { maxNumSeqs, maxNumBatchedTokens, maxModelLen, kvBlocks, maxNumQueuedReqs, maxNumQueuedTokens } =
    flags
  const apiKey = flags.apiKeyEnv === undefined ? undefined : terminal.env[flags.apiKeyEnv]
  if (flags.apiKeyEnv !== undefined && apiKey === undefined) {
    throw new Error(`--api-key-env names ${flags.apiKeyEnv}, which is not set`)
  }
  return {
    profile: flags.profile,
    host: flags.host,
    port: flags.port,
    servedModelNames: flags.model === undefined ? flags.servedModelName : [flags.model],
    policy: flags.schedulingPolicy,
    seed: flags.seed,
    speed: flags.speed,
    ...(apiKey === undefined ? {} : { apiKey }),
    ...(maxNumSeqs === undefined ? {} : { maxNumSeqs }),
    ...(maxNumBatchedTokens === undefined ? {} : { maxNumBatchedTokens }),
    ...(maxModelLen === undefined ? {} : { maxModelLen }),
    ...(kvBlocks === undefined ? {} : { kvBlocks }),
    ...(maxNumQueuedReqs === undefined ? {} : { maxNumQueuedReqs }),
    ...(maxNumQueuedTokens === undefined ? {} : { maxNumQueuedTokens }),
  }
}

/** Serves until SIGTERM or SIGINT has drained it. */
async function run(options: EngineServerOptions, terminal: Terminal): Promise<void> {
  const { host = '127.0.0.1', port = 0 } = options
  const engine = await startEngine(options).catch((error: NodeJS.ErrnoException) => {
    throw error.syscall === undefined ? error : listenFault(error, { host, port }, '--port')
  })
  terminal.err(`simulated vLLM (${options.profile}) on ${engine.url}\n`)
  await Promise.race([once(process, 'SIGTERM'), once(process, 'SIGINT')])
  terminal.err('draining; a second signal ends it now\n')
  await drainOrKill(engine)
}

async function drainOrKill(engine: RunningEngine): Promise<void> {
  const drained = engine.drain()
  const again = Promise.race([once(process, 'SIGTERM'), once(process, 'SIGINT')]).then(() => engine.kill())
  await Promise.race([drained, again])
  await engine.close()
}

function countArgument(text: string): number {
  const count = Number(text)
  if (!/^\d{1,9}$/.test(text) || count < 1)
    throw new InvalidArgumentError('It must be a whole number of at least 1.')
  return count
}
