/**
 * Faults under load, for some minutes.
 *
 *   npm run test:chaos -- [--duration 180] [--seed 1] [--load 1.5] [--workers 1] [--short]
 *
 * Sluice as built stands before four engines, each a process, at 1.5 times what they carry, while replicas are killed,
 * paused, slow, truncating, erring, mute and lying, their pages fail, clients leave and files are reloaded. Prints each
 * law and exits with 0 when all were kept. The same seed gives the same plan; what meets what is up to the machine.
 */
import { parseArgs } from 'node:util'
import { checkLaws } from './laws.ts'
import { reportOf } from './report.ts'
import { LONG_PACE, runChaos, SHORT_PACE } from './run.ts'

const { values } = parseArgs({
  options: {
    duration: { type: 'string', default: '180' },
    seed: { type: 'string', default: '1' },
    load: { type: 'string', default: '1.5' },
    workers: { type: 'string', default: '1' },
    short: { type: 'boolean', default: false },
  },
})
const durationSec = Number(values.duration)
const [seed, load, workers] = [Number(values.seed), Number(values.load), Number(values.workers)]
const areWhole = Number.isInteger(seed) && Number.isInteger(workers)
if (!(durationSec >= 3) || !areWhole || !(load > 0) || workers < 1) {
  console.error(
    '--duration is in seconds, at least 3; --seed and --workers (from 1) are whole; --load above 0',
  )
  process.exit(2)
}
// So that the children, stopped ones too, end with us.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130))

const evidence = await runChaos({
  durationMs: durationSec * 1000,
  seed,
  load,
  workers,
  pace: values.short ? SHORT_PACE : LONG_PACE,
  say: (line) => console.error(line),
})
const laws = checkLaws(evidence)
console.log(reportOf(evidence, laws))
process.exitCode = laws.every(({ broken }) => broken.length === 0) ? 0 : 1
