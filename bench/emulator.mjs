/**
 * Good requests a second on one simulated engine (`sluice engine`, real time): bare, behind Sluice, and behind a rival
 * proxy if one is given; each arm on a fresh engine under the same seeded arrivals.
 *
 *   npm run bench:emulator                            about 4 minutes
 *   npm run bench:emulator -- --loads 1,2,3 --seconds 60 --seeds 1,2
 *
 * 1x is what a bare engine keeps at 90 % good in the simulator for these promises' demo (`sluice demo` prints it for
 * two engines). Every request has the same promise: TTFT 0.8 s + 2 s per 1000 prompt tokens, TPOT 80 ms.
 * SLUICE_SKETCH names a script of a rival proxy, started as `node SCRIPT PORT ENGINE_PORT --tpot=80`.
 * Sluice is not told the engine's settings. Prints a table and JSON.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { configText } from './emulated-config.mjs'
import { answering, freePort, outputJson, start, startSluice, stop, stopAll } from './processes.mjs'

const { values: options } = parseArgs({
  options: {
    arms: { type: 'string', default: 'bare,sketch,sluice' },
    loads: { type: 'string', default: '1,2' },
    seconds: { type: 'string', default: '40' },
    seeds: { type: 'string', default: '1' },
    capacity: { type: 'string', default: '6.4' },
    'length-ratio': { type: 'string', default: '0.2' },
  },
})

const sketch = process.env.SLUICE_SKETCH
const workDir = mkdtempSync(join(tmpdir(), 'sluice-bench-'))
function fileWith(name, head) {
  const file = join(workDir, name)
  writeFileSync(file, configText(head))
  return file
}

/** Starts what an arm puts before the engine; returns the port to send to. */
async function front(arm, enginePort, children) {
  if (arm === 'bare') return enginePort
  const port = await freePort()
  const child =
    arm === 'sketch'
      ? start([process.execPath, sketch, port, enginePort, '--tpot=80'])
      : startSluice(['serve', '-c', await serveFile(port, enginePort)])
  children.push(child)
  await answering(`http://127.0.0.1:${port}/v1/models`, child, arm, { anyAnswer: true })
  return port
}

async function serveFile(port, enginePort) {
  return fileWith('serve.yaml', [
    `listen: 127.0.0.1:${port}`,
    `admin: { listen: "127.0.0.1:${await freePort()}" }`,
    `models: [{ name: demo, replicas: ["http://127.0.0.1:${enginePort}"] }]`,
  ])
}

function loadReport(port, rate, seed) {
  const head = ['models: [{ name: demo, replicas: ["http://127.0.0.1:1"] }]']
  const args = ['load', `http://127.0.0.1:${port}`, '--rate', rate, '--seed', seed]
  args.push('--duration', `${options.seconds}s`, '--length-ratio', options['length-ratio'], '--model', 'demo')
  args.push('--lengths', 'simulated', '--class', fileWith('load.yaml', head), '--format', 'json')
  return outputJson(startSluice(args, { output: true }), 'load')
}

async function runArm(arm, load, seed) {
  const children = []
  try {
    const enginePort = await freePort()
    const engineArgs = ['engine', '--profile', 'demo/slow', '--port', enginePort]
    const engine = startSluice([...engineArgs, '--served-model-name', 'demo', '--seed', seed])
    children.push(engine)
    await answering(`http://127.0.0.1:${enginePort}/health`, engine, 'engine')
    const port = await front(arm, enginePort, children)
    const report = await loadReport(port, load * Number(options.capacity), seed)
    const [{ goodPerSec, all }] = report.phases
    return {
      arm,
      load,
      seed,
      goodPerSec,
      attained: all.attainmentRatio,
      shed: all.shedRequests,
      valid: report.valid,
    }
  } finally {
    for (const child of children.reverse()) await stop(child)
  }
}

const arms = options.arms.split(',').filter((arm) => {
  if (arm === 'sketch' && sketch === undefined) {
    console.error('SKIPPED sketch: SLUICE_SKETCH names no rival proxy')
    return false
  }
  return true
})
const rows = []
try {
  for (const seed of options.seeds.split(',').map(Number)) {
    for (const load of options.loads.split(',').map(Number)) {
      for (const arm of arms) {
        rows.push(await runArm(arm, load, seed))
        const { goodPerSec, attained, shed, valid } = rows.at(-1)
        const share = `${((attained ?? 0) * 100).toFixed(1)} %`.padStart(8)
        console.log(
          `${load}x seed ${seed} ${arm.padEnd(8)} good ${goodPerSec.toFixed(2).padStart(6)}/s ${share} shed ${shed}${valid ? '' : ' (NOT VALID: the client lagged)'}`,
        )
      }
    }
  }
  console.log(JSON.stringify(rows))
} finally {
  await stopAll()
  rmSync(workDir, { recursive: true, force: true })
}
