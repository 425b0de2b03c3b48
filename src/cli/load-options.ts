/** Reads what `sluice load` is told into phases, promises and a mix, or says what is wrong with it. */
import { InvalidArgumentError, Option } from 'commander'
import type { Config } from '../config/config.ts'
import { loadConfig } from '../config/load.ts'
import { readConfigText } from '../config/read.ts'
import { formatDuration, parseDuration } from '../config/units.ts'
import type { SloClass } from '../core/request.ts'
import type { Ms } from '../core/units.ts'
import type { LoadPhase } from '../load/plan.ts'
import { WORKLOAD_CLASSES } from '../sim/classes.ts'
import type { WorkloadClass } from '../sim/workload-types.ts'
import { WORKLOADS } from '../sim/workloads.ts'
import { showProblem } from './show-problem.ts'
import type { Terminal } from './terminal.ts'

export interface LoadFlags {
  readonly rate?: readonly number[]
  readonly load?: readonly number[]
  readonly capacity?: number
  readonly duration: Ms
}

/** For commander: a duration such as `90s`. */
export function durationArgument(text: string): Ms {
  const parsed = parseDuration(text)
  if (!parsed.ok)
    throw new InvalidArgumentError([parsed.message, parsed.suggestion].filter(Boolean).join('; '))
  if (parsed.value <= 0) throw new InvalidArgumentError('It must be above 0.')
  return parsed.value
}

/** A duration with a default, shown as people write it. */
export function durationOption(flags: string, description: string, defaultMs: Ms): Option {
  return new Option(flags, description)
    .argParser(durationArgument)
    .default(defaultMs, formatDuration(defaultMs))
}

/** For commander: a number above 0. */
export function positiveArgument(text: string): number {
  const value = Number(text)
  if (!Number.isFinite(value) || value <= 0) throw new InvalidArgumentError('It must be a number above 0.')
  return value
}

/** A port; 0 takes any free one. */
export function portArgument(text: string): number {
  const port = Number(text)
  if (!/^\d{1,5}$/.test(text) || port > 65_535)
    throw new InvalidArgumentError('It must be a port, 0 to 65535.')
  return port
}

/** For commander: a whole number of at least 0. */
export function wholeArgument(text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new InvalidArgumentError('It must be a whole number of at least 0.')
  return Number(text)
}

/** For commander: numbers above 0, separated by commas. */
export function positivesArgument(text: string): readonly number[] {
  return text.split(',').map(positiveArgument)
}

/** For commander: an http address. */
export function urlArgument(text: string, earlier: readonly string[] = []): readonly string[] {
  if (!/^https?:\/\//.test(text) || !URL.canParse(text)) {
    throw new InvalidArgumentError('It must be an address such as http://127.0.0.1:8080.')
  }
  return [...earlier, text]
}

/** For commander: `chat=3,voice=1` gives those of the five workloads, in that proportion. */
export function mixArgument(text: string): readonly WorkloadClass[] {
  const known = WORKLOADS.map(({ name }) => name).join(', ')
  return text.split(',').map((part) => {
    const [name = '', share = '1'] = part.split('=')
    const workload = WORKLOADS.find((each) => each.name === name.trim())
    if (workload === undefined) throw new InvalidArgumentError(`"${name}" is none of ${known}.`)
    return { ...workload, share: positiveArgument(share) }
  })
}

/** The phases that the flags name; the duration is split evenly. Returns a complaint when they name none. */
export function phasesOf({ rate, load, capacity, duration }: LoadFlags): readonly LoadPhase[] | string {
  if ((rate === undefined) === (load === undefined)) {
    return 'give either --rate (requests/s) or --load (times --capacity), e.g. --rate 10 or --load 0.5,1,2 --capacity 12'
  }
  if (rate !== undefined) return named(rate, (value) => `${value}/s`, 1, duration)
  if (capacity === undefined) {
    return '--load is in times of --capacity: give the rate that the bare fleet still serves well, e.g. --capacity 12'
  }
  return named(load ?? [], (value) => `${value}x`, capacity, duration)
}

function named(
  values: readonly number[],
  nameOf: (value: number) => string,
  perSec: number,
  durationMs: Ms,
): readonly LoadPhase[] {
  const count = values.length
  return values.map((value, index) => ({
    // The same load twice is two phases.
    name: values.indexOf(value) === index ? nameOf(value) : `${nameOf(value)} (${index + 1})`,
    durationMs: durationMs / count,
    ratePerSec: value * perSec,
  }))
}

/** Promises by class: those of a configuration file, else the ones that Sluice has without any. */
export async function classesFrom(
  file: string | undefined,
  terminal: Terminal,
): Promise<Readonly<Record<string, SloClass>>> {
  return file === undefined ? WORKLOAD_CLASSES : (await configFrom('--class', file, terminal)).classes
}

/** The configuration in the file that an option names (`-` is stdin). Throws a RangeError with all its problems. */
export async function configFrom(option: string, file: string, terminal: Terminal): Promise<Config> {
  const text = file === '-' ? await terminal.readStdin() : await readConfigText(file)
  if (typeof text !== 'string') throw new RangeError(`${option} ${file}: ${text.message}`)
  const loaded = loadConfig(text, { fileName: file, env: terminal.env })
  if (loaded.ok) return loaded.config
  const told = loaded.problems.filter(({ severity }) => severity === 'error')
  throw new RangeError(
    `${option} ${file}: no valid configuration\n${told.map((problem) => showProblem(problem, text, false)).join('\n')}`,
  )
}
