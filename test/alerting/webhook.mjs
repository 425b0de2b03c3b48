/** What the alert story is staged with: programs on the path, processes that end with it, and a webhook that listens. */
import { spawn } from 'node:child_process'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { delimiter, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

/** The first of the names that is on the path. */
export function binary(...names) {
  for (const folder of (process.env.PATH ?? '').split(delimiter)) {
    for (const name of names) {
      try {
        closeSync(openSync(join(folder, name)))
        return join(folder, name)
      } catch {}
    }
  }
  return undefined
}

/** Starts programs whose output goes to files of the folder, and ends all of them. */
export function processes(folder) {
  const children = []

  function start(name, command, args) {
    const file = join(folder, `${name}.log`)
    const log = openSync(file, 'w')
    const child = spawn(command, args, { stdio: ['ignore', log, log] })
    closeSync(log)
    const ended = new Promise((resolve) => child.once('exit', resolve))
    children.push({ name, child, ended, file })
  }

  async function ready(name, url) {
    const endAtMs = performance.now() + 30_000
    while (performance.now() < endAtMs) {
      const dead = children.find(({ child }) => child.exitCode !== null)
      if (dead) throw new Error(`${dead.name} ended:\n${readFileSync(dead.file, 'utf8').slice(-2000)}`)
      if (
        await fetch(url).then(
          (response) => response.ok,
          () => false,
        )
      )
        return
      await sleep(100)
    }
    throw new Error(`${name} was not ready within 30 s (${url})`)
  }

  async function stopAll() {
    for (const { child } of children) child.kill('SIGTERM')
    await Promise.race([Promise.all(children.map(({ ended }) => ended)), sleep(5000)])
    for (const { child } of children) child.kill('SIGKILL')
  }

  return { start, ready, stopAll }
}

/** Hears what Alertmanager tells, and keeps it. */
export async function startWebhook(say) {
  const heard = []
  const server = createServer((request, response) => {
    const parts = []
    request.on('data', (part) => parts.push(part))
    request.on('end', () => {
      for (const alert of JSON.parse(Buffer.concat(parts)).alerts) {
        heard.push({ ...alert, path: request.url })
        say(`webhook ${request.url}: ${alert.status} ${alert.labels.alertname} (${alert.labels.severity})`)
        if (alert.status === 'firing') say(`    ${alert.annotations.summary}`)
      }
      response.end()
    })
  })
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  return { heard, port: server.address().port, close: () => server.close() }
}
