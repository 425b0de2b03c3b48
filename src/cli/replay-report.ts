/** Shows a replay: what happened beside what would have, class by class, and how far that can be trusted. */
import Table from 'cli-table3'
import pc from 'picocolors'
import { counted, listed, NOTHING, shownCount, shownMs, shownRate, shownSpan } from '../admin/words.ts'
import type { Ratio } from '../core/units.ts'
import type { Figures } from '../replay/comparison.ts'
import type { Logged } from '../replay/log-book.ts'
import { shownCounts, shownShare } from './load-report.ts'
import type { ModelEngines } from './replay-engines.ts'
import type { Replay, ReplayedGroup, Side } from './replay-run.ts'

export interface ReplayReport {
  readonly files: readonly string[]
  readonly config: string
  readonly wasConfig?: string
  readonly logged: Omit<Logged, 'requests'>
  readonly replay: Replay
  readonly remarks: readonly string[]
}

/** Shares this close are the same: a tenth of a point. */
const SAME_RATIO = 0.001

export function replayText(report: ReplayReport, colors: boolean): string {
  const { replay } = report
  const paint = pc.createColors(colors)
  const parts = [
    `${headline(report)}\n${replay.engines.map(engineLine).join('\n')}\n${sides(report)}`,
    attainmentTable(replay, paint),
    spansTable(replay),
    [...verdictLines(report, paint), ...remarksOf(report)].join('\n'),
  ]
  return `${parts.join('\n\n')}\n`
}

function headline({ files, replay }: ReplayReport): string {
  const time = (unixMs: number) => new Date(unixMs).toISOString().slice(0, 19)
  const span = `${time(replay.fromUnixMs)} to ${time(replay.toUnixMs)} UTC`
  return `${files.join(', ')}: ${counted(replay.requests, 'request')}, ${span}; the first ${shownSpan(replay.warmUpMs)} warm up, ${counted(replay.counted, 'request')} counted`
}

function engineLine({ model, source, profile, fit }: ModelEngines): string {
  if (source === 'option') return `engines of ${model}: ${profile.id}, as --profile says`
  if (source === 'file' || fit === undefined)
    return `engines of ${model}: ${profile.id}, as the file says, since the log holds too little to measure them`
  const decode = `a decode step ${fit.baseMs.toFixed(1)} ms + ${fit.perSequenceMs.toFixed(2)} ms a sequence`
  const prefill = `a prompt ${(fit.perPrefillTokenMs * 1000).toFixed(0)} ms per 1000 tokens + ${fit.requestOverheadMs.toFixed(0)} ms`
  const off = `off by ${shownShare(fit.paceErrorRatio)} and ${shownShare(fit.firstTokenErrorRatio)} in the median`
  return `engines of ${model}: measured in the log (${fit.paces} answers): ${decode}, ${prefill}, ${off}`
}

function sides({ config, wasConfig, replay }: ReplayReport): string {
  const line = (name: string, file: string, { mode, instances, replicas }: Side) => {
    const fleet = Object.entries(replicas).map(([model, count]) => `${counted(count, 'replica')} of ${model}`)
    return `${name} ${file}: mode ${mode}, ${fleet.join(', ')}${instances === 1 ? '' : `, ${instances} instances`}`
  }
  const was = replay.was === undefined ? [] : [line('was', wasConfig ?? '', replay.was)]
  return [...was, line('now', config, replay.now)].join('\n')
}

function attainmentTable(replay: Replay, paint: ReturnType<typeof pc.createColors>): string {
  const { was } = replay
  const anew = replay.total.loggedByNewPromises !== undefined
  const table = new Table({
    head: [
      'class',
      'requests',
      'attained, as logged',
      ...(anew ? ['by the new promises'] : []),
      ...(was === undefined ? [] : ['was, simulated']),
      'now, simulated',
      'change',
      'shed, as logged',
      ...(was === undefined ? [] : ['was']),
      'now',
      'good/s, as logged',
      ...(was === undefined ? [] : ['was']),
      'now',
    ],
    style: { head: [], border: [] },
  })
  const row = (name: string, group: Replay['total']) => {
    const { logged, loggedByNewPromises = logged, now } = group
    const base = group.was ?? loggedByNewPromises
    const all = [logged, ...(group.was === undefined ? [] : [group.was]), now]
    return [
      name,
      String(logged.offered),
      shownShare(logged.attainmentRatio),
      ...(anew ? [shownShare(loggedByNewPromises.attainmentRatio)] : []),
      ...(group.was === undefined ? [] : [shownShare(group.was.attainmentRatio)]),
      paint.bold(shownShare(now.attainmentRatio)),
      points(base.attainmentRatio, now.attainmentRatio, paint),
      ...all.map(({ shed }) => String(shed)),
      ...all.map(({ goodPerSec }) => shownRate(goodPerSec)),
    ]
  }
  for (const group of replay.groups) table.push(row(nameOf(group, replay), group))
  if (replay.groups.length > 1) table.push(row('all', replay.total))
  return table.toString()
}

/** The difference in points of a hundred. */
function points(
  before: Ratio | undefined,
  after: Ratio | undefined,
  paint: ReturnType<typeof pc.createColors>,
): string {
  if (before === undefined || after === undefined) return NOTHING
  const by = after - before
  if (Math.abs(by) < SAME_RATIO / 2) return '0'
  const text = `${by > 0 ? '+' : '−'}${Math.abs(by * 100).toFixed(1)}`
  return by > 0 ? paint.green(text) : paint.red(text)
}

function spansTable(replay: Replay): string {
  const table = new Table({
    head: ['class', 'which', 'TTFT p50', 'p99', 'TPOT p50', 'p99', 'shed for'],
    style: { head: [], border: [] },
  })
  for (const group of replay.groups) {
    const sides: [string, Figures | undefined][] = [
      ['as logged', group.logged],
      ['was, simulated', group.was],
      ['now, simulated', group.now],
    ]
    for (const [which, figures] of sides) {
      if (figures === undefined) continue
      const { ttftP50Ms, ttftP99Ms, tpotP50Ms, tpotP99Ms, shedByReason } = figures
      const spans = [ttftP50Ms, ttftP99Ms, tpotP50Ms, tpotP99Ms].map(shownMs)
      table.push([nameOf(group, replay), which, ...spans, shownCounts(shedByReason)])
    }
  }
  return table.toString()
}

function nameOf({ model, class: className }: ReplayedGroup, { groups }: Replay): string {
  return groups.every((group) => group.model === model) ? className : `${className} on ${model}`
}

function verdictLines({ replay }: ReplayReport, paint: ReturnType<typeof pc.createColors>): string[] {
  const { changes, total } = replay
  const before = replay.was === undefined ? 'as logged' : 'in the simulation of the old file'
  const told = changes.map(({ from, to, requests }) => `${from} → ${to} ${requests}`)
  const lines = [
    told.length === 0
      ? `verdicts: the same for every request as ${before}`
      : `verdicts that change against what they were ${before}: ${told.join(', ')}`,
  ]
  const [logged, was] = [total.logged.attainmentRatio, total.was?.attainmentRatio]
  if (logged === undefined) return lines
  if (was === undefined)
    return [
      ...lines,
      paint.yellow(
        'not checked against the log: give the file that was in force as --was, and the same requests are simulated under it too',
      ),
    ]
  const off = `${(Math.abs(was - logged) * 100).toFixed(1)} points`
  const check = `the simulation of the old file is ${off} from what was logged: take a smaller change with caution`
  return [...lines, check]
}

/** What matters most to a simulation under load, and no log tells. */
function assumption({ model, assumed }: ModelEngines): string[] {
  const { maxNumSeqs, maxNumBatchedTokens, kvCapacityTokens } = assumed
  const parts = [
    ...(maxNumSeqs === undefined ? [] : [`a batch of ${maxNumSeqs}`]),
    ...(maxNumBatchedTokens === undefined ? [] : [`${maxNumBatchedTokens} tokens a step`]),
    ...(kvCapacityTokens === undefined ? [] : [`${kvCapacityTokens} tokens of KV cache`]),
  ]
  return parts.length === 0
    ? []
    : [
        `engines of ${model} are taken to have ${listed(parts)}: the file tells neither engine_args nor a profile`,
      ]
}

function remarksOf({ logged, replay, remarks, wasConfig }: ReplayReport): string[] {
  const { leftOut, retries, now, was } = replay
  const { badLines, badExamples, repeated, outsideSpan, configDigests } = logged
  const some = (count: number, text: string) => (count === 0 ? [] : [`${shownCount(count)} ${text}`])
  const examples = badExamples.map(({ at, why }) => `  ${at}: ${why}`)
  const foreign = was !== undefined && configDigests.length > 0 && !configDigests.includes(was.digest)
  return [
    ...replay.engines.flatMap(assumption),
    ...remarks,
    ...some(badLines, `lines could not be read${badLines > examples.length ? ', first' : ''}:`),
    ...examples,
    ...some(repeated, 'lines came twice and count once'),
    ...some(outsideSpan, 'requests lie outside --from and --to'),
    ...some(leftOut.notGenerations, 'requests without generation (embeddings, tokenize) are not replayed'),
    ...some(leftOut.clientErrors, 'mistakes of clients (4xx) are not replayed'),
    ...some(leftOut.noPlace, 'requests have no model or class in the new file and are not replayed'),
    ...some(retries, 'retries by clients are replayed as they came, whatever becomes of what they repeat'),
    ...(foreign
      ? [`the log was decided under ${configDigests.join(', ')}; ${wasConfig} is ${was.digest}`]
      : []),
    ...(was === undefined && configDigests.length > 1
      ? [`the log was decided under ${configDigests.length} configurations: ${configDigests.join(', ')}`]
      : []),
    ...(now.instances > 1
      ? [`${now.instances} instances share the engines: the logs of all of them belong in`]
      : []),
  ]
}
