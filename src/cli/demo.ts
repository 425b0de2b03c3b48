/** `sluice demo`: two equal fleets under the same rising load, one bare and one behind Sluice, side by side. */
import { Command, Option } from 'commander'
import { createLogUpdate } from 'log-update'
import pc from 'picocolors'
import type { Ms } from '../core/units.ts'
import type { Capacity } from '../sim/capacity.ts'
import { ownBinary } from './demo-children.ts'
import { type DemoFleets, startFleets } from './demo-fleets.ts'
import { createDemoRun, type DemoRun } from './demo-ramp.ts'
import type { DemoReport } from './demo-report.ts'
import {
  DEMO_CLASSES,
  DEMO_LOADS,
  DEMO_PROFILE,
  DEMO_RAMP_MS,
  demoCapacity,
  demoPhases,
  REPLICAS_PER_FLEET,
} from './demo-scenario.ts'
import { liveLine, liveText, promiseText, summaryText } from './demo-screen.ts'
import { durationArgument, portArgument, positiveArgument, wholeArgument } from './load-options.ts'
import { systemTerminal, type Terminal } from './terminal.ts'

interface Flags {
  readonly duration?: Ms
  readonly capacity?: number
  readonly seed: number
  readonly adminPort: number
  readonly format: 'text' | 'json'
}

/** The one that config/prometheus.yml scrapes. */
const ADMIN_PORT = 19_090

const FRAME_MS: Ms = 500
const LINE_MS: Ms = 5000

const EXAMPLES = `
Examples:
  sluice demo                                  until Ctrl-C; a summary after each ramp of two minutes
  sluice demo --duration 60s                   one quicker ramp
  sluice demo --duration 2m --format json      the summary as JSON on stdout, progress on stderr
`

/** The command. `binary` is the built program whose other commands it starts. */
export function demoCommand(terminal: Terminal = systemTerminal, binary: string = ownBinary()): Command {
  return new Command('demo')
    .description('two equal simulated fleets under the same rising load: one bare, one behind Sluice')
    .option('--duration <time>', 'stop after that long (default: until stopped)', durationArgument)
    .option('--capacity <per second>', 'what 1x is (default: found in the simulator)', positiveArgument)
    .option('--seed <number>', 'of arrivals, lengths and prompts', wholeArgument, 1)
    .option(
      '--admin-port <number>',
      'of console and metrics; another if it is taken',
      portArgument,
      ADMIN_PORT,
    )
    .addOption(new Option('--format <format>', 'of the summary').choices(['text', 'json']).default('text'))
    .addHelpText('after', EXAMPLES)
    .action((flags: Flags) => demo(flags, terminal, binary))
}

async function demo(flags: Flags, terminal: Terminal, binary: string): Promise<void> {
  const stop = new AbortController()
  let asked = false
  const onSignal = () => {
    asked = true
    stop.abort()
  }
  process.on('SIGINT', onSignal).on('SIGTERM', onSignal)
  const say = flags.format === 'json' ? terminal.err : terminal.out
  let fleets: DemoFleets | undefined
  try {
    say(`sluice demo: starting ${2 * REPLICAS_PER_FLEET} simulated engines (${DEMO_PROFILE}) and Sluice…\n`)
    const starting = startFleets(binary, flags.adminPort, stop.signal)
    starting.catch(() => undefined)
    const capacity = await capacityOf(flags, say)
    fleets = await starting
    const report = await tour(fleets, capacity, flags, terminal, stop)
    if (flags.format === 'json') terminal.out(`${JSON.stringify(report, null, 2)}\n`)
  } catch (error) {
    // To be stopped while starting up is no failure.
    if (!asked) throw error
  } finally {
    await fleets?.close()
    process.off('SIGINT', onSignal).off('SIGTERM', onSignal)
  }
}

async function capacityOf({ capacity }: Flags, say: (text: string) => void): Promise<Capacity> {
  if (capacity !== undefined) {
    say(`1x is ${capacity} requests/s, as told.\n`)
    return { ratePerSec: capacity, saturatedPerSec: capacity }
  }
  // The children are being started by now; the simulator may have this process for a second.
  await new Promise(setImmediate)
  const found = demoCapacity()
  const ratePerSec = Math.round(found.ratePerSec * 10) / 10
  say(
    `1x is ${ratePerSec} requests/s: the highest rate at which a bare fleet keeps 90 % of requests good, found in the simulator (it completes ${found.saturatedPerSec.toFixed(1)}/s when saturated).\n`,
  )
  return { ...found, ratePerSec }
}

async function tour(
  fleets: DemoFleets,
  capacity: Capacity,
  flags: Flags,
  terminal: Terminal,
  stop: AbortController,
): Promise<DemoReport> {
  const { ramps, rampMs } = rampsOf(flags.duration)
  const run = createDemoRun(fleets, demoPhases(capacity.ratePerSec, rampMs), capacity, flags.seed)
  const text = flags.format === 'text'
  const say = text ? terminal.out : terminal.err
  const header = headerText(fleets, terminal.colors)
  say(`${header}\n`)
  for (const name of Object.keys(DEMO_CLASSES)) say(`  ${name.padEnd(13)} ${promiseText(name)}\n`)
  let failure: string | undefined
  void fleets.failed.then((why) => {
    failure = why
    stop.abort()
  })
  const screen = showScreen(run, header, terminal, text)
  try {
    for (let ramp = 0; ramp < ramps && !stop.signal.aborted; ramp++) {
      await run.ramp(stop.signal)
      screen.rest()
      if (failure === undefined && text) say(`\n${summaryText(run.report(), terminal.colors)}\n`)
    }
  } finally {
    screen.stop()
    run.stop()
  }
  if (failure !== undefined) throw new Error(`a process of the demo failed: ${failure}`)
  return run.report()
}

/** How many ramps of which length fill the wanted time; endless ones of the usual length without it. */
export function rampsOf(durationMs: Ms | undefined): { readonly ramps: number; readonly rampMs: Ms } {
  if (durationMs === undefined) return { ramps: Number.POSITIVE_INFINITY, rampMs: DEMO_RAMP_MS }
  const ramps = Math.max(1, Math.round(durationMs / DEMO_RAMP_MS))
  return { ramps, rampMs: durationMs / ramps }
}

function headerText({ adminUrl, sluiceUrl }: DemoFleets, colors: boolean): string {
  const paint = pc.createColors(colors)
  const body = `'{"model":"demo","messages":[{"role":"user","content":"hi"}],"max_tokens":8,"stream":true}'`
  return [
    `Each fleet gets the same requests, from ${DEMO_LOADS[0]}x to ${DEMO_LOADS.at(-1)}x of what it can carry.`,
    `console ${paint.cyan(adminUrl)}   in a browser, or: sluice top --url ${adminUrl}`,
    `traffic curl -sN ${sluiceUrl}/v1/chat/completions -H 'content-type: application/json' -d ${body}`,
  ].join('\n')
}

/** Live picture in place on a terminal, a line every few seconds elsewhere. */
function showScreen(
  run: DemoRun,
  header: string,
  terminal: Terminal,
  text: boolean,
): { rest(): void; stop(): void } {
  const stream = text ? process.stdout : process.stderr
  const line = text ? terminal.out : terminal.err
  if (!stream.isTTY) {
    const timer = setInterval(() => line(`${liveLine(run.now())}\n`), LINE_MS)
    return { rest: () => undefined, stop: () => clearInterval(timer) }
  }
  const update = createLogUpdate(stream)
  const timer = setInterval(() => update(liveText(run.now(), header, terminal.colors)), FRAME_MS)
  return {
    rest: () => update.clear(),
    stop() {
      clearInterval(timer)
      update.done()
    },
  }
}
