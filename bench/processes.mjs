/** Starts Sluice's own commands as processes, waits until they answer, and ends them. */
import { spawn } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

export const MAIN = fileURLToPath(new URL('../dist/cli/main.js', import.meta.url))
const READY_MS = 20_000

const running = new Set()

/** Starts a script of Node; what it says is shown when it fails. */
export function start(args, label) {
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'pipe'] })
  let said = ''
  child.stderr.on('data', (bytes) => {
    said = `${said}${bytes}`.slice(-2000)
  })
  running.add(child)
  child.once('exit', (code) => {
    running.delete(child)
    if (code !== 0 && code !== null) console.error(`${label} ended with ${code}: ${said}`)
  })
  return child
}

/** Ends a process at once and waits until it is gone. */
export async function stop(child) {
  if (child.exitCode !== null || child.signalCode !== null) return
  const gone = new Promise((done) => child.once('exit', done))
  child.kill('SIGKILL')
  await gone
}

/** Ends whatever still runs. */
export function stopAll() {
  for (const child of running) child.kill('SIGKILL')
}

/** Waits until something answers there; throws after 20 s. */
export async function ready(url, label) {
  const untilMs = performance.now() + READY_MS
  while (performance.now() < untilMs) {
    const answered = await fetch(url).then(
      (response) => response.arrayBuffer().then(() => true),
      () => false,
    )
    if (answered) return
    await sleep(100)
  }
  throw new Error(`${label} did not answer within ${READY_MS} ms`)
}

/** Runs one of Sluice's commands to its end and reads the JSON that it prints. */
export async function jsonOf(args) {
  const child = spawn(process.execPath, [MAIN, ...args.map(String)], { stdio: ['ignore', 'pipe', 'pipe'] })
  running.add(child)
  let text = ''
  let said = ''
  child.stdout.on('data', (bytes) => {
    text += bytes
  })
  child.stderr.on('data', (bytes) => {
    said = `${said}${bytes}`.slice(-2000)
  })
  await new Promise((done) => child.once('close', done))
  running.delete(child)
  if (text === '') throw new Error(`sluice ${args[0]} printed nothing: ${said}`)
  return JSON.parse(text)
}
