/** Prints a chaos run: what happened, and each law with what it looked at. */
import { left } from './clients.ts'
import type { Evidence } from './evidence.ts'
import type { Law } from './laws.ts'

const SHOWN = 5

export function reportOf(evidence: Evidence, laws: readonly Law[]): string {
  const { clients, faults, pages, reloads } = evidence
  const kinds = counted(faults.map(({ kind }) => kind))
  const ends = counted(clients.flatMap(({ seen }) => (seen === undefined ? [] : [seen.reason ?? seen.end])))
  const gone = clients.filter(left).length
  const bad = reloads.filter(({ good }) => !good).length
  const rows = laws.map(({ law, looked, broken }) => {
    const verdict = broken.length === 0 ? 'kept' : `BROKEN ${broken.length}x`
    const shown = broken.slice(0, SHOWN).map((line) => `\n      ${line}`)
    return `  ${verdict.padEnd(12)}${String(looked).padStart(7)}  ${law}${shown.join('')}`
  })
  return [
    `clients  ${clients.length}, ${evidence.offeredPerSec.toFixed(1)}/s offered to engines that serve ${evidence.capacityPerSec.toFixed(1)}/s; ${gone} left`,
    `ends     ${words(ends)}`,
    `faults   ${words(kinds)}; ${pages} of metrics pages`,
    `reloads  ${reloads.length - bad} of good files, ${bad} of bad ones`,
    '',
    `  ${'law'.padEnd(12)}${'looked'.padStart(7)}`,
    ...rows,
    '',
  ].join('\n')
}

function counted(all: readonly string[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>()
  for (const one of all) counts.set(one, (counts.get(one) ?? 0) + 1)
  return counts
}

function words(counts: ReadonlyMap<string, number>): string {
  return [...counts].map(([name, count]) => `${count} ${name}`).join(', ')
}
