/** Where the requests of `sluice simulate` come from: a workload, or a trace file. */
import { type SloClass, ttftTargetMs } from '../core/request.ts'
import type { Ms, Ratio } from '../core/units.ts'
import type { Arrivals } from '../sim/arrivals.ts'
import { type RequestSource, workloadSource } from '../sim/source.ts'
import { type Trace, TraceReader, traceRatePerSec, traceSource } from '../sim/trace.ts'
import { mapClasses } from '../sim/workload.ts'
import type { ClientModel, WorkloadClass } from '../sim/workload-types.ts'
import { namedWorkload } from '../sim/workloads.ts'
import { chunksOf, linesOf } from './lines.ts'

export interface SourceFlags {
  readonly workload: string
  readonly mix?: readonly WorkloadClass[]
  readonly arrivals?: Arrivals
  readonly trace?: string
  readonly traceClass: string
  readonly lengthRatio: Ratio
  readonly client: ClientModel
  /** The engines heed priorities: the tighter a class's TTFT target, the sooner. */
  readonly prioritized: boolean
}

export interface ChosenSource {
  readonly source: RequestSource
  /** For the report's first line. */
  readonly describe: string
  /** What a trace ran at when it was recorded, and for how long. */
  readonly recorded?: { readonly ratePerSec: number; readonly durationMs: Ms }
}

type Classes = Readonly<Record<string, SloClass>>

/** Throws a RangeError for a trace that can't be read. */
export async function chooseSource(flags: SourceFlags, classes: Classes): Promise<ChosenSource> {
  if (flags.trace !== undefined) return traceFrom(flags.trace, flags, classes)
  const { mix, lengthRatio, arrivals, client } = flags
  const named =
    mix === undefined ? namedWorkload(flags.workload) : { name: 'mix', phases: [{ classes: mix }] }
  const workload = mapClasses(named, (entry) => ({
    ...entry,
    ...(Object.keys(client).length === 0 ? {} : { client }),
    ...(flags.prioritized ? { priority: priorityOf(entry.name, classes) } : {}),
  }))
  const shape = { lengthRatio, ...(arrivals === undefined ? {} : { arrivals }) }
  return { source: workloadSource(workload, shape), describe: workload.name }
}

async function traceFrom(file: string, flags: SourceFlags, classes: Classes): Promise<ChosenSource> {
  if (classes[flags.traceClass] === undefined) {
    throw new RangeError(`--trace-class "${flags.traceClass}" is none of ${Object.keys(classes).join(', ')}`)
  }
  const trace = await readTrace(file, Object.keys(classes))
  const source = traceSource(trace, {
    className: flags.traceClass,
    lengthRatio: flags.lengthRatio,
    client: flags.client,
  })
  const ratePerSec = traceRatePerSec(trace)
  const failed = trace.failedRows === 0 ? '' : `, ${trace.failedRows} failed ones left out`
  return {
    source,
    describe: `${file} (${trace.form} form, ${trace.rows.length} requests${failed})`,
    recorded: { ratePerSec, durationMs: source.lengthMsAt?.(ratePerSec) ?? 0 },
  }
}

/** Reads line by line, unpacked on the way. */
async function readTrace(file: string, classNames: readonly string[]): Promise<Trace> {
  const reader = new TraceReader(file, classNames)
  try {
    for await (const line of linesOf(chunksOf(file), LONGEST_LINE_CHARS)) {
      if (line === undefined)
        throw new RangeError(
          `${file}: a line of more than ${LONGEST_LINE_CHARS} characters; is this a trace?`,
        )
      reader.take(line)
    }
  } catch (error) {
    if (error instanceof RangeError) throw error
    throw new RangeError(`--trace ${file}: ${error instanceof Error ? error.message : String(error)}`)
  }
  return reader.end()
}

const LONGEST_LINE_CHARS = 16 * 2 ** 20

/** The rank of the class's TTFT target among all, the tightest first; those without one come last. */
function priorityOf(className: string, classes: Classes): number {
  const targetOf = (slo: SloClass | undefined) =>
    (slo === undefined ? undefined : ttftTargetMs(slo, 0)) ?? Number.POSITIVE_INFINITY
  const own = targetOf(classes[className])
  return new Set(
    Object.values(classes)
      .map(targetOf)
      .filter((target) => target < own),
  ).size
}
