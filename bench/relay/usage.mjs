/** Starts, watches and ends the bench's own child processes, and reads what CPU they used. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { findProgram } from '../peers/installed.mjs'

const taskset = process.platform === 'linux' ? findProgram('taskset') : undefined
const children = new Set()

/** True when processes can be held to a core of their own. */
export const canPin = taskset !== undefined

let realTime = false

/** From now on children run ahead of everything else on the machine (needs root): for machines that others use too. */
export function useRealTime() {
  if (findProgram('chrt') === undefined) throw new Error('--rt needs chrt (Debian: util-linux) and root')
  realTime = true
}

/** Starts a command on that core. Its log goes to `log` (a file descriptor) or nowhere. */
export function start([program, ...args], { core, log = 'ignore', output = false, env = {} } = {}) {
  const pinned = [
    ...(realTime ? [findProgram('chrt'), '--rr', '1'] : []),
    ...(canPin && core !== undefined ? [taskset, '-c', String(core)] : []),
    program,
    ...args,
  ]
  const stdio = ['ignore', output ? 'pipe' : log, log, 'ipc']
  const child = spawn(pinned[0], pinned.slice(1), { stdio, env: { ...process.env, ...env } })
  children.add(child)
  child.on('exit', () => children.delete(child))
  child.on('error', () => children.delete(child))
  return child
}

/** All that a child prints until it ends, parsed as one JSON value. */
export async function outputJson(child, what) {
  let text = ''
  child.stdout.on('data', (bytes) => {
    text += bytes
  })
  const [code] = await once(child, 'close')
  if (code !== 0) throw new Error(`${what} ended with ${code}: ${text.slice(0, 400)}`)
  return JSON.parse(text)
}

/** The first line that a child prints, parsed as JSON. */
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
  throw new Error('a child ended before it said anything')
}

export async function stop(child) {
  if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
  const gone = once(child, 'exit')
  child.kill('SIGTERM')
  const timer = setTimeout(() => child.kill('SIGKILL'), 5000)
  await gone
  clearTimeout(timer)
}

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

/** Waits until something listens there. */
export async function listening(port, child, what, limitMs = 20_000) {
  const endAtMs = performance.now() + limitMs
  while (performance.now() < endAtMs) {
    if (child.exitCode !== null)
      throw new Error(`${what} ended with ${child.exitCode} before it listened; see the log`)
    const socket = connect(port, '127.0.0.1')
    const up = await Promise.race([
      once(socket, 'connect').then(() => true),
      once(socket, 'close').then(() => false),
    ]).catch(() => false)
    socket.destroy()
    if (up) return
    await sleep(50)
  }
  throw new Error(`${what} did not listen on ${port} within ${limitMs} ms`)
}

/** Seconds that a process and its children have run, and have waited for a core while they could run. Linux only. */
export function cpuSeconds(pid) {
  let ran = 0
  let waited = 0
  for (const each of tree(pid)) {
    for (const task of readdirSync(`/proc/${each}/task`)) {
      const [runNs, waitNs] = readFileSync(`/proc/${each}/task/${task}/schedstat`, 'utf8')
        .split(' ')
        .map(Number)
      ran += runNs / 1e9
      waited += waitNs / 1e9
    }
  }
  return { ran, waited }
}

/** The most memory that a process and its children had in RAM, each at its own time, in MiB. Linux only. */
export function peakMib(pid) {
  const kib = tree(pid).map((each) =>
    Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${each}/status`, 'utf8'))?.[1]),
  )
  return kib.reduce((sum, each) => sum + each, 0) / 1024
}

/** A process and its descendants: nginx works in a child of its own. */
function tree(pid) {
  const children = readdirSync(`/proc/${pid}/task`).flatMap((task) =>
    readFileSync(`/proc/${pid}/task/${task}/children`, 'utf8').trim().split(' ').filter(Boolean).map(Number),
  )
  return [pid, ...children.flatMap(tree)]
}
