/** Starts programs as child processes, waits until they answer, and ends them: for every bench and script here. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { fileURLToPath } from 'node:url'
import { findProgram } from './peers/installed.mjs'
import { eventually } from './waiting.mjs'

/** Sluice's own command, as `npm run build` leaves it. */
export const MAIN = fileURLToPath(new URL('../dist/cli/main.js', import.meta.url))
const READY_MS = 30_000
const STOP_MS = 5000
const SAID_BYTES = 2000

const taskset = process.platform === 'linux' ? findProgram('taskset') : undefined
const children = new Set()
const lastWords = new WeakMap()

/** True when processes can be held to a core of their own. */
export const canPin = taskset !== undefined

let realTime = false

/** From now on children run ahead of everything else on the machine (needs root): for machines that others use too. */
export function useRealTime() {
  if (findProgram('chrt') === undefined) throw new Error('--rt needs chrt (Debian: util-linux) and root')
  realTime = true
}

/**
 * Starts a command, on that core if one is given. With `output` its standard output can be read. All else that it says
 * goes to `log`: a file descriptor, the path of a file that is begun anew, or 'ignore'; without one the end of its
 * errors is kept for the message when it fails.
 */
export function start(command, { core, log, output = false, env = {}, cwd } = {}) {
  const words = [
    ...(realTime ? [findProgram('chrt'), '--rr', '1'] : []),
    ...(canPin && core !== undefined ? [taskset, '-c', String(core)] : []),
    ...command.map(String),
  ]
  const file = typeof log === 'string' && log !== 'ignore' ? openSync(log, 'w') : undefined
  const errors = file ?? log ?? 'pipe'
  const stdio = ['ignore', output ? 'pipe' : (file ?? log ?? 'ignore'), errors, 'ipc']
  const child = spawn(words[0], words.slice(1), { stdio, env: { ...process.env, ...env }, cwd })
  if (file !== undefined) closeSync(file)
  children.add(child)
  child.on('exit', () => children.delete(child))
  child.on('error', () => children.delete(child))
  lastWords.set(child, file === undefined ? wordsOf(child) : () => readFileSync(log, 'utf8'))
  return child
}

function wordsOf(child) {
  let text = ''
  child.stderr?.on('data', (bytes) => {
    text = `${text}${bytes}`.slice(-SAID_BYTES)
  })
  return () => text || 'see the log'
}

/** Starts one of Sluice's own commands. */
export const startSluice = (args, options) => start([process.execPath, MAIN, ...args], options)

/** The end of what a child said of its troubles. */
const said = (child) => lastWords.get(child)().slice(-SAID_BYTES)

/** All that a child started with `output` prints until it ends, parsed as one JSON value. */
export async function outputJson(child, what) {
  let text = ''
  child.stdout.on('data', (bytes) => {
    text += bytes
  })
  const [code] = await once(child, 'close')
  if (code !== 0) throw new Error(`${what} ended with ${code}: ${text.slice(0, 400)}\n${said(child)}`)
  return JSON.parse(text)
}

/** The first line that a child started with `output` prints, parsed as JSON. */
export async function firstLineJson(child) {
  let text = ''
  for await (const bytes of child.stdout) {
    text += bytes
    const end = text.indexOf('\n')
    if (end >= 0) {
      child.stdout.resume()
      return JSON.parse(text.slice(0, end))
    }
  }
  throw new Error(`a child ended before it said anything: ${said(child)}`)
}

/** False also for a program that could not be started. */
const isRunning = (child) => child.pid !== undefined && child.exitCode === null && child.signalCode === null

/** Asks a child to end, forces it after 5 s, and waits until it is gone. */
export async function stop(child) {
  if (child === undefined || !isRunning(child)) return
  const gone = once(child, 'exit')
  child.kill('SIGTERM')
  const timer = setTimeout(() => child.kill('SIGKILL'), STOP_MS)
  await gone
  clearTimeout(timer)
}

/** Ends whatever still runs. */
export const stopAll = () => Promise.all([...children].map(stop))

/** A port that was free a moment ago. */
export async function freePort() {
  const server = createServer()
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address()
  server.close()
  await once(server, 'close')
  return port
}

/** Waits until the child listens there; throws when it ends or takes longer than 30 s. */
export async function listening(port, child, what) {
  await untilUp(child, `${what} to listen on ${port}`, async () => {
    const socket = connect(port, '127.0.0.1')
    const up = await Promise.race([
      once(socket, 'connect').then(() => true),
      once(socket, 'close').then(() => false),
    ]).catch(() => false)
    socket.destroy()
    return up
  })
}

/** Waits until a GET there succeeds, or with `anyAnswer` is answered at all; throws as `listening` does. */
export async function answering(url, child, what, { anyAnswer = false } = {}) {
  await untilUp(child, `${what} to answer ${url}`, () => answers(url, anyAnswer))
}

async function answers(url, anyAnswer) {
  const response = await fetch(url).catch(() => undefined)
  await response?.body?.cancel()
  return response !== undefined && (response.ok || anyAnswer)
}

async function untilUp(child, label, isUp) {
  const look = () => {
    if (isRunning(child)) return isUp()
    const end = child.pid === undefined ? 'could not be started' : `ended with ${child.exitCode}`
    throw new Error(`waited for ${label}, and it ${end}: ${said(child)}`)
  }
  await eventually(label, READY_MS, look)
}
