/** Measures the CPU of this process in slices, as shares of one core. */
import { setTimeout as sleep } from 'node:timers/promises'
import { quantile } from './goodput/stats.mjs'

/** Neighbours on the machine only ever add to CPU time, so the cheapest slice is the nearest to the truth. */
export async function coreShare(slices, sliceMs) {
  const ratios = []
  const total = { spanMs: 0, userUs: 0, systemUs: 0 }
  for (let slice = 0; slice < slices; slice += 1) {
    const cpu = process.cpuUsage()
    const startMs = performance.now()
    await sleep(sliceMs)
    const spanMs = performance.now() - startMs
    const { user, system } = process.cpuUsage(cpu)
    ratios.push((user + system) / 1000 / spanMs)
    total.spanMs += spanMs
    total.userUs += user
    total.systemUs += system
  }
  return { best: Math.min(...ratios), median: quantile(ratios, 0.5), ...total }
}
