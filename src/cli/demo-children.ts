/** Starts other sluice commands as processes of their own and leaves none behind, however the demo ends. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { Ms } from '../core/units.ts'

export interface ChildOptions {
  /** The built `main.js`. */
  readonly binary: string
  readonly args: readonly string[]
  /** Shown when it fails. */
  readonly name: string
  /** Where its output goes, as `NAME.log`. */
  readonly folder: string
}

export interface Child {
  readonly pid: number | undefined
  /** Resolves with what it last said when it ends without being asked to. */
  readonly failed: Promise<string>
  /** Ends it: politely, then not. Resolves when it is gone. Idempotent. */
  close(): Promise<void>
}

const END_WITH_PARENT = new URL('./end-with-parent.js', import.meta.url).href
/** How long a child may take to end by itself. */
const GRACE_MS: Ms = 2000
const POLL_MS: Ms = 50
const LOG_TAIL_BYTES = 1500

/** Starts one child. It dies with this process: asked to at exit, and by itself when the channel to us breaks. */
export function startChild({ binary, args, name, folder }: ChildOptions): Child {
  const logFile = join(folder, `${name}.log`)
  const log = openSync(logFile, 'w')
  const child = spawn(process.execPath, ['--import', END_WITH_PARENT, binary, ...args], {
    stdio: ['ignore', log, log, 'ipc'],
    env: { ...process.env, NO_COLOR: '1' },
  })
  closeSync(log)
  const killNow = () => void child.kill('SIGKILL')
  process.once('exit', killNow)
  let asked = false
  const gone = new Promise<string>((resolve) => {
    const end = (why: string) => {
      process.off('exit', killNow)
      resolve(why)
    }
    child.once('error', (error) => end(error.message))
    child.once('exit', (code, signal) => end(`it ended with ${signal ?? `code ${code}`}`))
  })
  const failed = new Promise<string>((resolve) => {
    void gone.then((why) => {
      if (!asked) resolve(`${name}: ${why}\n${readFileSync(logFile, 'utf8').slice(-LOG_TAIL_BYTES)}`.trim())
    })
  })
  return {
    pid: child.pid,
    failed,
    async close() {
      asked = true
      await endChild(child, gone)
    },
  }
}

async function endChild(child: ChildProcess, gone: Promise<string>): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return
  child.kill('SIGTERM')
  const timer = setTimeout(() => child.kill('SIGKILL'), GRACE_MS)
  await gone
  clearTimeout(timer)
}

/** A port that was free a moment ago: the wanted one if it was, else any. */
export async function freePort(wanted = 0): Promise<number> {
  const server = createServer()
  server.listen(wanted, '127.0.0.1')
  try {
    await once(server, 'listening')
  } catch (error) {
    if (wanted === 0) throw error
    return freePort()
  }
  const address = server.address()
  server.close()
  await once(server, 'close')
  if (address === null || typeof address === 'string') throw new Error('no port')
  return address.port
}

/** Waits until `url` answers 200. Throws when it has not within `limitMs`, or when the signal fires. */
export async function answering(url: string, limitMs: Ms, signal: AbortSignal): Promise<void> {
  const endAtMs = performance.now() + limitMs
  let last = 'no answer'
  while (performance.now() < endAtMs) {
    signal.throwIfAborted()
    const status = await fetch(url, { signal })
      .then(async (response) => {
        await response.body?.cancel()
        return response.status
      })
      .catch((error: Error) => {
        last = error.message
        return 0
      })
    if (status === 200) return
    if (status > 0) last = `status ${status}`
    await sleep(POLL_MS, undefined, { signal })
  }
  throw new Error(`${url} was not ready within ${limitMs / 1000} s (${last})`)
}

/** The built command line of this package. */
export function ownBinary(): string {
  return fileURLToPath(new URL('./main.js', import.meta.url))
}
