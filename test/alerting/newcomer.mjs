/**
 * A newcomer's first page: a fresh clone, then the very commands of "Try it on one machine" in docs/alerting.md, until
 * Prometheus shows the alert firing.
 *
 *   npm run test:newcomer
 *
 * Takes two to three minutes; clones what is committed. Needs git, the npm registry and prometheus (Debian: prometheus);
 * skips loudly without. Prints when each step was done; exit code 0 when the alert fired within five minutes.
 */
import { execFileSync, spawn } from 'node:child_process'
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { findProgram } from '../../bench/peers/installed.mjs'
import { eventually } from '../../bench/waiting.mjs'

const ROOT = join(dirname(fileURLToPath(import.meta.url)), '..', '..')
const PAGE = 'SluiceSloBurnFast'
const LIMIT_MS = 300_000
const STOP_MS = 5000

const startedAtMs = performance.now()
const elapsedMs = () => performance.now() - startedAtMs
const say = (text) => console.log(`${(elapsedMs() / 1000).toFixed(1).padStart(6)} s  ${text}`)

/** The indented lines of the guide's section, without what a newcomer would not type. */
function guideCommands(clone) {
  const guide = readFileSync(join(clone, 'docs', 'alerting.md'), 'utf8')
  const section = guide.split('\n## Try it on one machine\n')[1]?.split('\n## ')[0] ?? ''
  return section.split('\n').flatMap((line) => (line.startsWith('    ') ? [line.trim()] : []))
}

const children = []

/** One command in a terminal of its own. */
function type(command, cwd, place) {
  // What the guide puts into a temporary folder goes away with the clone.
  const env = { ...process.env, TMPDIR: dirname(cwd) }
  const file = join(cwd, `terminal-${place}.log`)
  const log = openSync(file, 'w')
  // A session of its own, as a terminal is: npm does not always pass signals on.
  const child = spawn('bash', ['-c', command], { cwd, env, stdio: ['ignore', log, log], detached: true })
  closeSync(log)
  children.push(child)
  const text = () => readFileSync(file, 'utf8')
  return {
    text,
    check: () => {
      if (child.exitCode !== null) throw new Error(`"${command}" ended:\n${text().slice(-2000)}`)
    },
  }
}

async function until(what, terminals, probe) {
  const look = () => {
    for (const terminal of terminals) terminal.check()
    return probe()
  }
  await eventually(`this to be so: ${what}`, LIMIT_MS - elapsedMs(), look, 250)
  say(what)
}

/** What the page says of each class that it fires for, by Prometheus' own word; nothing while it does not answer. */
const pages = (address) =>
  fetch(`http://${address}/api/v1/alerts`)
    .then((response) => response.json())
    .then(({ data }) =>
      data.alerts.filter(({ state, labels }) => state === 'firing' && labels.alertname === PAGE),
    )
    .then((alerts) => alerts.map(({ annotations }) => annotations.summary))
    .catch(() => [])

async function walk(clone) {
  execFileSync('git', ['clone', '--quiet', ROOT, clone])
  say('cloned')
  const [start, prometheus, ...more] = guideCommands(clone)
  const address = /--web\.listen-address=(\S+)/.exec(prometheus ?? '')?.[1]
  if (start !== 'npm start' || address === undefined || more.length > 0)
    throw new Error('the guide no longer has two commands: npm start and a prometheus')
  // Both are typed at once: Prometheus waits for what it scrapes.
  const terminals = [type(start, clone, 1), type(prometheus, clone, 2)]
  await until('the demo says where its console is', terminals, () => /console http/.test(terminals[0].text()))
  const console_ = /console (http:\S+)/.exec(terminals[0].text())?.[1]
  const scraped = readFileSync(join(clone, 'config', 'prometheus.yml'), 'utf8')
  if (!scraped.includes(new URL(console_).host)) throw new Error(`${console_} is not what Prometheus scrapes`)
  const what = `${PAGE} fires on http://${address}/alerts`
  await until(what, terminals, async () => (await pages(address)).length > 0)
  for (const summary of await pages(address)) say(`  ${summary}`)
}

async function stopAll() {
  const ended = children.map((child) => new Promise((resolve) => child.once('exit', resolve)))
  const signal = (name) => {
    for (const child of children) {
      try {
        process.kill(-child.pid, name)
      } catch {}
    }
  }
  signal('SIGTERM')
  await Promise.race([Promise.all(ended), sleep(STOP_MS)])
  signal('SIGKILL')
}

async function main() {
  if (findProgram('prometheus') === undefined) {
    console.log('SKIPPED test:newcomer: prometheus is not on the path (Debian: apt-get install prometheus).')
    return
  }
  const folder = mkdtempSync(join(tmpdir(), 'sluice-newcomer-'))
  try {
    await walk(join(folder, 'sluice'))
    console.log('1 passed, 0 failed')
  } catch (error) {
    console.log(`FAILED: ${error.message}`)
    console.log('0 passed, 1 failed')
    process.exitCode = 1
  } finally {
    await stopAll()
    rmSync(folder, { recursive: true, force: true })
  }
}

await main()
process.exit()
