/**
 * One configuration in real time and in the simulator: `sluice serve` before simulated engines (`sluice engine`) under
 * `sluice load`, and `sluice simulate` with the same promises, fleet, workload and rate.
 *
 *   npm run bench:real-time                                   about four minutes
 *   npm run bench:real-time -- --loads 1,2 --seconds 60
 *
 * 1x is what the bare fleet keeps at 90 % good in the simulator, found by it. In real time a first stretch of the same
 * length is not counted, since the simulator counts no warm-up either. Wanted: good shares within 5 points. A row is
 * NOT VALID when the load client lagged. Nothing is told about the engines. Prints a table and JSON.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { configText } from './emulated-config.mjs'
import { answering, freePort, outputJson, startSluice, stop, stopAll } from './processes.mjs'

const PROFILE = 'demo/slow'
const LENGTH_RATIO = '0.2'
const WANTED_POINTS = 5

const { values: options } = parseArgs({
  options: {
    loads: { type: 'string', default: '0.8,1.5,2.5' },
    seconds: { type: 'string', default: '35' },
    replicas: { type: 'string', default: '2' },
    seed: { type: 'string', default: '1' },
  },
})

const workDir = mkdtempSync(join(tmpdir(), 'sluice-bench-'))

function configFile(port, adminPort, enginePorts) {
  const replicas = enginePorts.map((enginePort) => `"http://127.0.0.1:${enginePort}"`).join(', ')
  const file = join(workDir, 'sluice.yaml')
  const head = [
    `listen: 127.0.0.1:${port}`,
    `admin: { listen: "127.0.0.1:${adminPort}" }`,
    `models: [{ name: demo, replicas: [${replicas}] }]`,
  ]
  writeFileSync(file, configText(head))
  return file
}

const jsonOf = (...args) => outputJson(startSluice([...args, '--format', 'json'], { output: true }), args[0])

function simulated(file, ...more) {
  const fleet = ['--config', file, '--profile', PROFILE, '--replicas', options.replicas]
  const work = ['--length-ratio', LENGTH_RATIO, '--seed', options.seed]
  return jsonOf('simulate', ...fleet, ...work, ...more)
}

async function inRealTime(ratePerSec) {
  const children = []
  try {
    const enginePorts = []
    for (let index = 0; index < Number(options.replicas); index++) {
      const port = await freePort()
      const args = ['--port', port, '--served-model-name', 'demo', '--seed', index + 1]
      const engine = startSluice(['engine', '--profile', PROFILE, ...args])
      children.push(engine)
      await answering(`http://127.0.0.1:${port}/health`, engine, 'engine')
      enginePorts.push(port)
    }
    const port = await freePort()
    const file = configFile(port, await freePort(), enginePorts)
    const sluice = startSluice(['serve', '-c', file])
    children.push(sluice)
    await answering(`http://127.0.0.1:${port}/v1/models`, sluice, 'sluice')
    const rates = ['--rate', `${ratePerSec},${ratePerSec}`, '--duration', `${2 * Number(options.seconds)}s`]
    const work = ['--length-ratio', LENGTH_RATIO, '--lengths', 'simulated', '--seed', options.seed]
    const to = [`http://127.0.0.1:${port}`, '--model', 'demo', '--class', file]
    const report = await jsonOf('load', ...to, ...rates, ...work)
    return { goodRatio: report.phases.at(-1).all.attainmentRatio, valid: report.valid }
  } finally {
    for (const child of children.reverse()) await stop(child)
  }
}

const percent = (ratio) => `${(100 * ratio).toFixed(1)} %`

try {
  const file = configFile(
    1,
    2,
    Array.from({ length: Number(options.replicas) }, (_, index) => index + 3),
  )
  const found = await simulated(file, '--find-goodput', '--scheduler', 'round-robin')
  const capacityPerSec = found.found[0].capacity.ratePerSec
  console.log(`1x = ${capacityPerSec.toFixed(1)} requests/s on ${options.replicas} x ${PROFILE}`)
  const rows = []
  for (const load of options.loads.split(',').map(Number)) {
    const ratePerSec = Number((load * capacityPerSec).toFixed(2))
    const duration = [
      '--duration',
      `${2 * Number(options.seconds)}s`,
      '--rate',
      ratePerSec,
      '--scheduler',
      'sluice',
    ]
    const virtual = (await simulated(file, ...duration)).runs[0].report.total.attainmentRatio
    const { goodRatio, valid } = await inRealTime(ratePerSec)
    const points = 100 * Math.abs(goodRatio - virtual)
    rows.push({ load, ratePerSec, realTimeRatio: goodRatio, simulatedRatio: virtual, points, valid })
    const note = valid ? (points > WANTED_POINTS ? ' (apart)' : '') : ' (NOT VALID: the client lagged)'
    console.log(
      `${load}x  real time ${percent(goodRatio)}  simulated ${percent(virtual)}  ${points.toFixed(1)} points${note}`,
    )
  }
  console.log(JSON.stringify(rows))
} finally {
  await stopAll()
  rmSync(workDir, { recursive: true, force: true })
}
