/** The columns of `top`: what of promises, replicas and decisions is shown, how it sorts, and what stands out. */
import type { DecisionFigures } from '../admin/overview/decisions.ts'
import type { Overview } from '../admin/overview/overview.ts'
import { type PromiseFigures, promiseName, type SpanFigures } from '../admin/overview/promises.ts'
import type { ReplicaFigures } from '../admin/overview/replicas.ts'
import type { ClassWaiting } from '../admin/ports.ts'
import {
  NOTHING,
  shownAttainment,
  shownBudget,
  shownClock,
  shownCount,
  shownMs,
  shownObjective,
  shownPercent,
  shownRate,
  shownSpan,
  shownTimes,
} from '../admin/words.ts'
import type { Cell, CellTone, Column } from './text-table.ts'

const STATE_TONES: Readonly<Record<string, CellTone>> = {
  critical: 'bad',
  burning: 'warn',
  unknown: 'soft',
  suspect: 'bad',
  down: 'bad',
  ramping: 'warn',
  draining: 'warn',
}
/** Older gauges are pointed at, in ms. */
const STALE_MS = 5000

/** A promise with what it is called and what waits of its class. */
export interface PromiseRow extends PromiseFigures {
  readonly name: string
  readonly waits?: ClassWaiting
}

export function promiseRows({ promises, waiting }: Overview): readonly PromiseRow[] {
  return promises.map((promise) => {
    const waits = waiting.classes.find((one) => one.class === promise.class)
    return { ...promise, name: promiseName(promise, promises), ...(waits === undefined ? {} : { waits }) }
  })
}

export const PROMISE_COLUMNS: readonly Column<PromiseRow>[] = [
  { head: 'CLASS', importance: 100, cell: ({ name }) => name, sortBy: ({ name }) => name },
  { head: 'STATE', importance: 90, cell: stateCell },
  { head: 'OBJ', align: 'right', importance: 50, cell: (row) => shownObjective(row.objectiveRatio) },
  {
    head: '5 MIN',
    align: 'right',
    importance: 95,
    cell: (row) => shareCell(row.attainment['5m'], row),
    sortBy: (row) => -(row.attainment['5m'] ?? 2),
  },
  { head: '1 H', align: 'right', importance: 60, cell: (row) => shareCell(row.attainment['1h'], row) },
  { head: 'PERIOD', align: 'right', importance: 40, cell: (row) => shareCell(row.attainment.period, row) },
  {
    head: 'BUDGET',
    align: 'right',
    importance: 80,
    cell: (row) => budgetCell(row.budgetRemainingRatio),
    sortBy: (row) => -(row.budgetRemainingRatio ?? 2),
  },
  {
    head: 'BURN 5M/1H',
    align: 'right',
    importance: 70,
    cell: ({ burn }) => `${shownTimes(burn['5m'])} ${shownTimes(burn['1h'])}`,
    sortBy: ({ burn }) => burn['5m'] ?? -1,
  },
  {
    head: 'GOOD/S',
    align: 'right',
    importance: 85,
    cell: ({ goodPerSec }) => shownRate(goodPerSec),
    sortBy: ({ goodPerSec }) => goodPerSec,
  },
  { head: 'OF', align: 'right', importance: 65, cell: ({ judgedPerSec }) => shownRate(judgedPerSec) },
  {
    head: 'TTFT 50/99',
    align: 'right',
    importance: 75,
    cell: ({ ttft }) => spanCell(ttft),
    sortBy: ({ ttft }) => ttft.p99Ms ?? -1,
  },
  { head: 'TPOT 50/99', align: 'right', importance: 55, cell: ({ tpot }) => spanCell(tpot) },
  {
    head: 'WAIT',
    align: 'right',
    importance: 72,
    cell: ({ waits }) => shownCount(waits?.requests ?? 0),
    sortBy: ({ waits }) => waits?.requests ?? 0,
  },
  { head: 'OLDEST', align: 'right', importance: 45, cell: ({ waits }) => shownMs(waits?.oldestMs) },
]

export const REPLICA_COLUMNS: readonly Column<ReplicaFigures>[] = [
  { head: 'REPLICA', importance: 100, cell: ({ name }) => name, sortBy: ({ name }) => name },
  { head: 'MODELS', importance: 30, cell: ({ models }) => ({ text: models.join(','), tone: 'soft' }) },
  {
    head: 'STATE',
    importance: 95,
    cell: ({ state }) => ({ text: state, tone: STATE_TONES[state] ?? 'plain' }),
    sortBy: ({ state }) => state,
  },
  {
    head: 'FLIGHT',
    align: 'right',
    importance: 90,
    cell: ({ inFlightRequests }) => shownCount(inFlightRequests),
    sortBy: ({ inFlightRequests }) => inFlightRequests,
  },
  { head: 'PREFILL', align: 'right', importance: 40, cell: (row) => shownCount(row.prefillingRequests) },
  {
    head: 'BACKLOG',
    align: 'right',
    importance: 80,
    cell: ({ backlogTokens }) => shownCount(backlogTokens),
    sortBy: ({ backlogTokens }) => backlogTokens,
  },
  {
    head: 'KV',
    align: 'right',
    importance: 85,
    cell: ({ kvUsageRatio }) => shownPercent(kvUsageRatio),
    sortBy: ({ kvUsageRatio }) => kvUsageRatio ?? -1,
  },
  { head: 'QUEUED', align: 'right', importance: 50, cell: (row) => shownCount(row.engineWaitingRequests) },
  {
    head: 'TRUST',
    importance: 60,
    cell: ({ trust }) => (trust === 'fallback' ? 'not yet' : (trust ?? NOTHING)),
  },
  { head: 'PREDICTED', align: 'right', importance: 70, cell: ({ ttft }) => shownMs(ttft?.predictedMs) },
  {
    head: 'REAL TTFT',
    align: 'right',
    importance: 75,
    cell: ({ ttft }) => shownMs(ttft?.realMs),
    sortBy: ({ ttft }) => ttft?.realMs ?? -1,
  },
  { head: 'GAUGES', align: 'right', importance: 35, cell: ({ scrapeAgeMs }) => ageCell(scrapeAgeMs) },
]

export function decisionColumns({ unixOriginMs }: Overview): readonly Column<DecisionFigures>[] {
  return [
    {
      head: 'TIME',
      importance: 50,
      cell: ({ atMs }) => shownClock(atMs + unixOriginMs),
      sortBy: ({ atMs }) => atMs,
    },
    { head: 'CLASS', importance: 80, cell: (row) => row.class, sortBy: (row) => row.class },
    {
      head: 'DECISION',
      importance: 90,
      cell: ({ decision, verdict }) => ({
        text: verdict === 'bad' && decision !== 'shed' ? `${decision}, missed` : decision,
        tone: decision === 'shed' ? 'bad' : verdict === 'bad' ? 'warn' : 'plain',
      }),
      sortBy: ({ decision }) => decision,
    },
    {
      head: 'WHY',
      importance: 100,
      stretches: true,
      cell: ({ why, end, wouldHave }) => [why, wouldHave, end].filter(Boolean).join(' '),
    },
    {
      head: 'REQUEST',
      importance: 20,
      cell: ({ requestId }) => ({ text: requestId.slice(0, 36), tone: 'soft' }),
    },
  ]
}

/** Marked when it is below the objective. */
function shareCell(ratio: number | undefined, { objectiveRatio }: PromiseFigures): Cell {
  const missed = ratio !== undefined && objectiveRatio !== undefined && ratio < objectiveRatio
  return { text: `${missed ? '!' : ''}${shownAttainment(ratio)}`, ...(missed ? { tone: 'warn' } : {}) }
}

function stateCell({ state, raisedBy, objectiveRatio }: PromiseFigures): Cell {
  if (objectiveRatio === undefined) return { text: 'no targets', tone: 'soft' }
  const text = state === 'ok' ? 'kept' : state === 'unknown' ? 'too few' : state
  return { text: raisedBy === undefined ? text : `${text} ${raisedBy}`, tone: STATE_TONES[state] ?? 'plain' }
}

function budgetCell(remainingRatio: number | undefined): Cell {
  const low = remainingRatio !== undefined && remainingRatio < 0.25
  const tone = remainingRatio !== undefined && remainingRatio < 0 ? 'bad' : low ? 'warn' : 'plain'
  return { text: shownBudget(remainingRatio), tone }
}

function spanCell({ p50Ms, p99Ms, targetMs, per1kTokensMs }: SpanFigures): Cell {
  const late =
    targetMs !== undefined && per1kTokensMs === undefined && p99Ms !== undefined && p99Ms > targetMs
  const text = p50Ms === undefined ? NOTHING : `${shownMs(p50Ms)} ${late ? '!' : ''}${shownMs(p99Ms)}`
  return { text, ...(late ? { tone: 'warn' } : {}) }
}

function ageCell(scrapeAgeMs: number | undefined): Cell {
  if (scrapeAgeMs === undefined) return { text: NOTHING }
  return { text: shownSpan(scrapeAgeMs), tone: scrapeAgeMs > STALE_MS ? 'warn' : 'soft' }
}
