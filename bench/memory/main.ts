/**
 * What crowds cost, and how soon engines are rid of clients that left.
 *
 *   npm run bench:memory -- [--only streams|stalled|idle|uploads|headers|names|disconnects] [--stalled 10000]
 *
 * Each figure is taken from a fresh Sluice as built. On Linux it runs in a network of its own where it may (`unshare`,
 * `ip`), with small socket buffers: a reader stalls at once there, and ten thousand of them don't fill the kernel. The
 * limit of open files bounds how many there are: each takes two of Sluice's.
 */
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { disconnects } from './disconnects.ts'
import {
  type Figure,
  memoryOfHeaders,
  memoryOfIdle,
  memoryOfNames,
  memoryOfStalled,
  memoryOfStreams,
  memoryOfUploads,
  type Sizes,
} from './figures.ts'

const OWN_NETWORK = 'SLUICE_BENCH_NETWORK'
/** Files that each process needs for itself. */
const SPARE_FILES = 600
const STALLED_IN_SHARED_NETWORK = 300

const PARTS: Readonly<Record<string, (sizes: Sizes) => Promise<Figure[]>>> = {
  streams: memoryOfStreams,
  stalled: memoryOfStalled,
  idle: memoryOfIdle,
  uploads: memoryOfUploads,
  headers: memoryOfHeaders,
  names: memoryOfNames,
  disconnects,
}

const { values } = parseArgs({
  options: { only: { type: 'string' }, stalled: { type: 'string', default: '10000' } },
})
if (values.only !== undefined && PARTS[values.only] === undefined) {
  console.error(`--only is one of ${Object.keys(PARTS).join(', ')}`)
  process.exit(2)
}

/** Runs this once more in a network of its own. Returns when that can't be had. */
function inOwnNetwork(): void {
  if (process.platform !== 'linux' || process.env[OWN_NETWORK] !== undefined) return
  const prepare = [
    'ip link set lo up',
    'echo "4096 16384 32768" > /proc/sys/net/ipv4/tcp_wmem',
    'echo "4096 32768 32768" > /proc/sys/net/ipv4/tcp_rmem',
  ].join(' && ')
  const unshare = (script: string, args: readonly string[]) =>
    spawnSync('unshare', ['-rn', 'sh', '-c', script, 'sh', ...args], {
      stdio: args.length === 0 ? 'ignore' : 'inherit',
      env: { ...process.env, [OWN_NETWORK]: 'yes' },
    })
  if (unshare(prepare, []).status !== 0) return
  const self = [process.execPath, ...process.execArgv, ...process.argv.slice(1)]
  process.exit(unshare(`${prepare} && exec "$@"`, self).status ?? 1)
}

function sizes(): Sizes {
  const limits = process.platform === 'linux' ? readFileSync('/proc/self/limits', 'utf8') : ''
  const files = Number(/^Max open files +\d+ +(\d+)/m.exec(limits)?.[1] ?? 8192)
  const own = process.env[OWN_NETWORK] !== undefined
  const fitting = Math.floor((files - SPARE_FILES) / 2)
  return {
    streams: Math.min(1000, fitting),
    stalled: Math.min(own ? Number(values.stalled) : STALLED_IN_SHARED_NETWORK, fitting),
    idle: Math.min(10_000, files - SPARE_FILES),
    names: 100_000,
    unfinished: Math.min(2000, files - SPARE_FILES),
    leavers: 500,
    readersStall: own,
  }
}

inOwnNetwork()
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130))
if (process.env[OWN_NETWORK] === undefined)
  console.log(
    'No network of its own could be had: fewer readers stall, behind large socket buffers, and how soon one that leaves is noticed is not measured.',
  )

let missed = 0
for (const [name, measure] of Object.entries(PARTS)) {
  if (values.only !== undefined && values.only !== name) continue
  for (const { what, value, unit, limit, note = '' } of await measure(sizes())) {
    const kept = limit === undefined || value <= limit
    if (!kept) missed += 1
    const wanted = limit === undefined ? '' : `${kept ? 'wanted' : 'MISSED, wanted'} <= ${limit}`
    console.log(
      `${what.padEnd(66)}${value.toFixed(1).padStart(9)} ${unit.padEnd(12)}${wanted.padEnd(24)}${note}`,
    )
  }
}
process.exitCode = missed === 0 ? 0 : 1
