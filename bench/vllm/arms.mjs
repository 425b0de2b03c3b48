/** What stands before the engine in a row: nothing, a cap of its own, HAProxy, a rival proxy, or Sluice. */
import { spawn } from 'node:child_process'
import { closeSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import * as servers from '../../test/vllm/servers.mjs'
import { findProgram } from '../peers/installed.mjs'
import { freePort } from '../relay/children.mjs'
import { plainSlo } from './workload.mjs'

const READY_MS = 20_000
const TOLD = '{ max_num_seqs: 16, max_num_batched_tokens: 256 }'
/** A class without a promise. */
const LEFTOVER = '{ overload: wait, max_wait: 10m }'
/** How long HAProxy lets a request wait for a place; longer ones did worse at overload. */
const HAPROXY_QUEUE = '500ms'

/** Whether anything answers there; with `ok`, whether it answers with success. */
async function answers(url, ok) {
  return fetch(url, { method: ok ? 'GET' : 'POST' }).then(
    (response) => response.ok || !ok,
    () => false,
  )
}

/** Starts a program, waits until `ready` resolves to true, and returns how to end it. */
async function startChild(name, command, stateDir, ready) {
  const logFile = join(stateDir, `${name}.log`)
  const log = openSync(logFile, 'w')
  const [program, ...args] = command.map(String)
  const child = spawn(program, args, { stdio: ['ignore', log, log], cwd: stateDir })
  closeSync(log)
  const ended = new Promise((done) => child.once('exit', done))
  const end = async () => {
    child.kill('SIGTERM')
    await Promise.race([ended, sleep(3000, undefined, { ref: false })])
    child.kill('SIGKILL')
    await ended
  }
  for (const deadline = Date.now() + READY_MS; ; await sleep(100)) {
    if (child.exitCode !== null || Date.now() > deadline) {
      await end()
      throw new Error(`${name} did not start:\n${readFileSync(logFile, 'utf8').slice(-2000)}`)
    }
    if (await ready()) return end
  }
}

/** The workload's classes as a file has them; one for all where it has none. */
function classesText({ classes }, tpotTargetMs) {
  const promised = Object.entries(classes ?? { bench: { slo: plainSlo(tpotTargetMs) } })
  const lines = promised.map(
    ([name, { slo }]) => `  ${name}: ${slo === undefined ? LEFTOVER : promiseText(slo)}`,
  )
  return ['classes:', ...lines, `default_class: ${promised[0][0]}`].join('\n')
}

function promiseText({ ttftMs, ttftPer1kTokensMs, tpotMs, e2eMs }) {
  const targets = { ttft: ttftMs, ttft_per_1k_tokens: ttftPer1kTokensMs, tpot: tpotMs, e2e: e2eMs }
  const told = Object.entries(targets).filter(([, ms]) => ms !== undefined)
  return `{ ${told.map(([key, ms]) => `${key}: ${ms}ms`).join(', ')}, objective: 99% }`
}

async function startSluice({ enginePort, stateDir, root, tpotTargetMs, workload }, engineArgs) {
  const [port, adminPort] = [await freePort(), await freePort()]
  const file = join(stateDir, 'sluice.yaml')
  writeFileSync(
    file,
    `listen: 127.0.0.1:${port}
admin: { listen: 127.0.0.1:${adminPort} }
mode: enforce
auth: none
models:
  - name: ${servers.MODEL_NAME}
    engine_args: ${engineArgs}
    replicas: [http://127.0.0.1:${enginePort}]
${classesText(workload, tpotTargetMs)}
`,
  )
  const command = [process.execPath, join(root, 'dist', 'cli', 'main.js'), 'serve', '-c', file]
  const ready = () => answers(`http://127.0.0.1:${adminPort}/readyz`, true)
  return { port, end: await startChild('sluice', command, stateDir, ready) }
}

async function startSketch({ enginePort, stateDir, tpotTargetMs }) {
  const port = await freePort()
  const script = resolve(process.env.SLUICE_SKETCH)
  const command = [process.execPath, script, port, enginePort, `--tpot=${tpotTargetMs}`]
  // It has no page of its own: that it answers an empty request with an error is enough.
  const ready = () => answers(`http://127.0.0.1:${port}/`, false)
  return { port, end: await startChild('sketch', command, stateDir, ready) }
}

async function startHaproxy({ enginePort, stateDir }, maxconn) {
  const port = await freePort()
  const file = join(stateDir, 'vllm-haproxy.cfg')
  writeFileSync(
    file,
    `global
  nbthread 1
  maxconn 8000
defaults
  mode http
  timeout connect 5s
  timeout client 300s
  timeout server 300s
  timeout queue ${HAPROXY_QUEUE}
  option http-no-delay
frontend bench
  bind 127.0.0.1:${port}
  default_backend engine
backend engine
  server one 127.0.0.1:${enginePort} maxconn ${maxconn}
`,
  )
  const ready = () => answers(`http://127.0.0.1:${port}/health`, true)
  const command = [findProgram('haproxy'), '-db', '-f', file]
  return { port, end: await startChild('haproxy', command, stateDir, ready) }
}

const KINDS = {
  bare: { open: async ({ enginePort }) => ({ port: enginePort, end: async () => {} }) },
  cap: { engineArgs: (limit) => ['--max-num-queued-reqs', limit] },
  'token-cap': { engineArgs: (limit) => ['--max-num-queued-tokens', limit] },
  haproxy: {
    open: startHaproxy,
    missing: () => (findProgram('haproxy') ? undefined : 'haproxy is not installed'),
  },
  sketch: {
    open: startSketch,
    missing: () => (process.env.SLUICE_SKETCH ? undefined : 'SLUICE_SKETCH names no rival proxy'),
  },
  sluice: { open: (where) => startSluice(where, '{}') },
  // As an operator would write it; the caps are as well informed.
  told: { open: (where) => startSluice(where, TOLD) },
}

/**
 * The arms by their names, `KIND` or `KIND:LIMIT`; throws on an unknown kind. Those that can't run here are left out,
 * with a word on stderr. `engineArgs` are what its own engine needs; arms without any share one.
 */
export function armsOf(names) {
  return names.flatMap((name) => {
    const [kind, limit] = name.split(':')
    const made = KINDS[kind]
    if (made === undefined || (limit === undefined && (made.engineArgs || kind === 'haproxy'))) {
      throw new Error(`no arm ${name}; known: bare, cap:N, token-cap:N, haproxy:N, sketch, sluice, told`)
    }
    const missing = made.missing?.()
    if (missing !== undefined) console.error(`SKIPPED: ${name}, since ${missing}.`)
    if (missing !== undefined) return []
    const open = (where) => (made.open ?? KINDS.bare.open)(where, limit)
    return [{ name, engineArgs: made.engineArgs?.(limit) ?? [], open }]
  })
}
