/** What CPU and memory a process and its children have used. Linux only. */
import { readdirSync, readFileSync } from 'node:fs'

/** Seconds that a process and its children have run, and have waited for a core while they could run. Linux only. */
export function cpuSeconds(pid) {
  let ran = 0
  let waited = 0
  for (const each of tree(pid)) {
    for (const task of readdirSync(`/proc/${each}/task`)) {
      const [runNs, waitNs] = readFileSync(`/proc/${each}/task/${task}/schedstat`, 'utf8')
        .split(' ')
        .map(Number)
      ran += runNs / 1e9
      waited += waitNs / 1e9
    }
  }
  return { ran, waited }
}

/** The most memory that a process and its children had in RAM, each at its own time, in MiB. Linux only. */
export function peakMib(pid) {
  const kib = tree(pid).map((each) =>
    Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${each}/status`, 'utf8'))?.[1]),
  )
  return kib.reduce((sum, each) => sum + each, 0) / 1024
}

/** A process and its descendants: nginx works in a child of its own. */
function tree(pid) {
  const children = readdirSync(`/proc/${pid}/task`).flatMap((task) =>
    readFileSync(`/proc/${pid}/task/${task}/children`, 'utf8').trim().split(' ').filter(Boolean).map(Number),
  )
  return [pid, ...children.flatMap(tree)]
}
