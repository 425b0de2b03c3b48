/** The row of the fleet's dashboard for worker processes; empty with `workers: 1`. */
import { select } from '../promql.ts'
import type { Panel, Row } from './panel.ts'
import { OF_JOB, rate } from './queries.ts'

const WORKER = '{{instance}} worker {{worker}}'

function lines(title: string, description: string, unit: Panel['unit'], queries: Panel['queries']): Panel {
  return { title, description, kind: 'lines', unit, min: 0, queries }
}

export function workers(): Row {
  return {
    title: 'Workers',
    panels: [
      lines('Requests by worker', 'Should be alike: connections are handed out in turn.', 'reqps', [
        { expr: rate('workerRequests', OF_JOB), legend: WORKER },
      ]),
      lines('Routed without the decider', 'Should be 0: the deciding process was away.', 'reqps', [
        { expr: rate('workerAlone', OF_JOB), legend: WORKER },
      ]),
      lines(
        'Workers up',
        'Linked to the process that decides, and how often they were started anew.',
        'short',
        [
          { expr: select('workerUp', OF_JOB), legend: WORKER },
          {
            expr: `increase(${select('workerRestarts', OF_JOB)}[$__rate_interval])`,
            legend: `${WORKER} restarts`,
          },
        ],
      ),
      lines('CPU by worker', 'Cores in use; near 1 it is the limit.', 'short', [
        { expr: rate('workerCpu', OF_JOB), legend: WORKER },
      ]),
      lines('Memory by worker', 'Resident.', 'decbytes', [
        { expr: select('workerMemory', OF_JOB), legend: WORKER },
      ]),
      lines('Event loop lag by worker', 'At the 99 % quantile; adds to every chunk.', 's', [
        { expr: select('workerLag', OF_JOB), legend: WORKER },
      ]),
    ],
  }
}
