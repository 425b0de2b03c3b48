/** What stands before the engine in a row: nothing, a cap of its own, HAProxy, a rival proxy, or Sluice. */
import { writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import * as servers from '../../test/vllm/servers.mjs'
import { haproxyCommand, missingHaproxy } from '../peers/haproxy.mjs'
import { answering, freePort, MAIN, start, stop } from '../processes.mjs'
import { plainSlo } from './workload.mjs'

const TOLD = '{ max_num_seqs: 16, max_num_batched_tokens: 256 }'
/** A class without a promise. */
const LEFTOVER = { overload: 'wait', max_wait: 600_000 }
/** How long HAProxy lets a request wait for a place; longer ones did worse at overload. */
export const HAPROXY_QUEUE_MS = 500

/** Starts what answers on `port`, waits until it does at `url`, and returns both. Its log goes to a file. */
async function opened(name, command, { stateDir }, port, url, how) {
  const child = start(command, { log: join(stateDir, `${name}.log`), cwd: stateDir })
  const end = () => stop(child)
  try {
    await answering(url, child, name, how)
  } catch (error) {
    await end()
    throw error
  }
  return { port, end }
}

/** The workload's classes by name as a file has them, durations in ms; one for all where it has none. */
export function targetsOf({ classes }, tpotTargetMs) {
  const promised = Object.entries(classes ?? { bench: { slo: plainSlo(tpotTargetMs) } })
  return Object.fromEntries(
    promised.map(([name, { slo }]) => [name, slo === undefined ? LEFTOVER : promiseOf(slo)]),
  )
}

function promiseOf({ ttftMs, ttftPer1kTokensMs, tpotMs, e2eMs }) {
  const targets = { ttft: ttftMs, ttft_per_1k_tokens: ttftPer1kTokensMs, tpot: tpotMs, e2e: e2eMs }
  const told = Object.entries(targets).filter(([, ms]) => ms !== undefined)
  return { ...Object.fromEntries(told), objective: 0.99 }
}

function classesText(workload, tpotTargetMs) {
  const classes = Object.entries(targetsOf(workload, tpotTargetMs))
  const lines = classes.map(([name, targets]) => `  ${name}: ${flow(targets)}`)
  return ['classes:', ...lines, `default_class: ${classes[0][0]}`].join('\n')
}

/** One line of YAML. */
function flow(targets) {
  const parts = Object.entries(targets).map(([key, value]) =>
    typeof value === 'string' || key === 'objective' ? `${key}: ${value}` : `${key}: ${value}ms`,
  )
  return `{ ${parts.join(', ')} }`
}

async function openSluice(where, engineArgs) {
  const { enginePort, stateDir, tpotTargetMs, workload } = where
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
  const command = [process.execPath, MAIN, 'serve', '-c', file]
  return opened('sluice', command, where, port, `http://127.0.0.1:${adminPort}/readyz`)
}

async function openSketch(where) {
  const port = await freePort()
  const script = resolve(process.env.SLUICE_SKETCH)
  const command = [process.execPath, script, port, where.enginePort, `--tpot=${where.tpotTargetMs}`]
  // It has no page of its own: that it answers at all is enough.
  return opened('sketch', command, where, port, `http://127.0.0.1:${port}/`, { anyAnswer: true })
}

async function openHaproxy(where, maxconn) {
  const port = await freePort()
  const limits = { maxconn, queueMs: HAPROXY_QUEUE_MS, reuse: 'safe' }
  const command = haproxyCommand({
    port,
    upstreamPorts: [where.enginePort],
    workDir: where.stateDir,
    ...limits,
  })
  return opened('haproxy', command, where, port, `http://127.0.0.1:${port}/health`)
}

const KINDS = {
  bare: { open: async ({ enginePort }) => ({ port: enginePort, end: async () => {} }) },
  cap: { engineArgs: (limit) => ['--max-num-queued-reqs', limit] },
  'token-cap': { engineArgs: (limit) => ['--max-num-queued-tokens', limit] },
  haproxy: {
    open: openHaproxy,
    missing: missingHaproxy,
  },
  sketch: {
    open: openSketch,
    missing: () => (process.env.SLUICE_SKETCH ? undefined : 'SLUICE_SKETCH names no rival proxy'),
  },
  sluice: { open: (where) => openSluice(where, '{}') },
  // As an operator would write it; the caps are as well informed.
  told: { open: (where) => openSluice(where, TOLD) },
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
