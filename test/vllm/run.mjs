/**
 * Sluice in front of two real vLLM servers, driven by the official OpenAI clients for JavaScript and Python.
 *
 *   npm run test:vllm
 *
 * Takes some 5 minutes, and as long again for the installation at first use (7 GB; see servers.mjs). Prints a line a
 * case and the counts; exit code 0 when all passed. Skips loudly without Python >= 3.11.
 */
import { execFileSync, spawn } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { answering, freePort, MAIN, startSluice } from '../../bench/processes.mjs'
import { TTFT_BASE_MS, TTFT_PER_1K_TOKENS_MS } from '../../bench/vllm/score.mjs'
import { fleetCases } from './fleet-cases.mjs'
import { sdkCases } from './sdk-cases.mjs'
import * as servers from './servers.mjs'

const HERE = dirname(fileURLToPath(import.meta.url))
const ROOT = join(HERE, '..', '..')
const STATE = join(ROOT, '.real-vllm')
const ENGINE_ARGS = ['--enable-auto-tool-choice', '--tool-call-parser', 'hermes']
const TIGHT_CLASS = 'tight'

/** Functional cases run in a class without targets: a slow machine must not turn them into refusals. */
function configText({ port, adminPort, enginePorts, key }) {
  const digest = createHash('sha256').update(key).digest('hex')
  return `listen: 127.0.0.1:${port}
admin: { listen: 127.0.0.1:${adminPort} }
mode: enforce
models:
  - name: ${servers.MODEL_NAME}
    replicas:
${enginePorts.map((each) => `      - http://127.0.0.1:${each}`).join('\n')}
classes:
  best-effort: {}
  ${TIGHT_CLASS}: { ttft: ${TTFT_BASE_MS}ms, ttft_per_1k_tokens: ${TTFT_PER_1K_TOKENS_MS}ms, tpot: 80ms, objective: 99% }
default_class: best-effort
auth: keys
tenants:
  - { name: sdk, key_sha256: ["${digest}"], classes: [best-effort, ${TIGHT_CLASS}] }
`
}

/** Writes the file and has Sluice check it, before minutes are spent on starting engines. */
function writeConfig(settings) {
  mkdirSync(STATE, { recursive: true })
  const file = join(STATE, 'sluice.yaml')
  writeFileSync(file, configText(settings))
  execFileSync(process.execPath, [MAIN, 'validate', file], { stdio: ['ignore', 'ignore', 'inherit'] })
  return file
}

async function serve(file, { adminPort }) {
  const child = startSluice(['serve', '-c', file], { log: join(STATE, 'sluice.log') })
  await answering(`http://127.0.0.1:${adminPort}/readyz`, child, 'Sluice')
  return child
}

const counts = { passed: 0, failed: 0 }

function report(name, ok, detail) {
  counts[ok ? 'passed' : 'failed']++
  console.log(`${ok ? 'ok  ' : 'FAIL'} ${name}${detail ? `: ${detail}` : ''}`)
}

async function runCases(kind, cases) {
  for (const [name, run] of Object.entries(cases)) {
    try {
      report(`${kind}: ${name}`, true, await run())
    } catch (error) {
      report(
        `${kind}: ${name}`,
        false,
        String(error.stack ?? error)
          .split('\n')
          .slice(0, 6)
          .join(' | '),
      )
    }
  }
}

async function runPython({ base, key, model }) {
  const script = join(HERE, 'sdk_cases.py')
  const child = spawn(servers.VENV_PYTHON, [script, `${base}/v1`, key, model], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const ended = new Promise((done) => child.once('exit', done))
  for await (const line of createInterface({ input: child.stdout })) {
    const { name, ok, detail } = JSON.parse(line)
    report(`Python SDK: ${name}`, ok, detail)
  }
  const code = await ended
  if (code !== 0) report('Python SDK', false, `the script ended with ${code}`)
}

async function main() {
  servers.install(servers.requirePython('test:vllm'))
  const [port, adminPort, ...enginePorts] = await Promise.all([1, 2, 3, 4].map(freePort))
  const key = `sk-${randomBytes(16).toString('hex')}`
  const seat = { base: `http://127.0.0.1:${port}`, key, model: servers.MODEL_NAME }
  const settings = { port, adminPort, enginePorts, key }
  const file = writeConfig(settings)
  let sluice
  const end = async () => {
    sluice?.kill('SIGKILL')
    await servers.stop(enginePorts)
  }
  for (const name of ['SIGINT', 'SIGTERM']) process.once(name, () => end().finally(() => process.exit(130)))
  try {
    console.log('starting two vLLM servers (about a minute) ...')
    await servers.start(enginePorts, ENGINE_ARGS)
    sluice = await serve(file, settings)
    await runCases('JS SDK', sdkCases(seat))
    await runPython(seat)
    const fleet = { ...seat, enginePorts, engineArgs: ENGINE_ARGS, tightClass: TIGHT_CLASS, sluice }
    await runCases('fleet', fleetCases(fleet))
  } finally {
    await end()
  }
  console.log(`\n${counts.passed} passed, ${counts.failed} failed`)
  process.exitCode = counts.failed === 0 ? 0 : 1
}

await main()
