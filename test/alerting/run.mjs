/**
 * An overload from the first late token to the page and back: Sluice and two embedded engines, a real Prometheus with
 * the rules of `sluice export prometheus`, a real Alertmanager, and a webhook that must hear of it.
 *
 *   npm run test:alerts
 *
 * Takes about three minutes. Needs prometheus, promtool, alertmanager and amtool (Debian: prometheus,
 * prometheus-alertmanager); skips loudly without. Prints a line an event with its time; exit code 0 when the page came
 * and went.
 */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parse, stringify } from 'yaml'
import { findProgram } from '../../bench/peers/installed.mjs'
import { answering, freePort, MAIN, start, stopAll } from '../../bench/processes.mjs'
import { startWebhook } from './webhook.mjs'

const ROOT = join(dirname(fileURLToPath(import.meta.url)), '..', '..')
const PROFILE = 'Llama-3.1-8B/H100-80G-SXM/tp1'
const PAGE = 'SluiceSloBurnFast'

/** Healthy traffic first, so that the overload has something to be measured against. */
const HEALTHY = { perSec: 25, promptWords: 40, maxTokens: 12 }
const HEALTHY_MS = 20_000
/** Long prompts, far more than two engines prefill in time. */
const OVERLOAD = { perSec: 30, promptWords: 5000, maxTokens: 12 }
const OVERLOAD_MS = 6000
const PAGE_LIMIT_MS = 60_000
const CLEAR_LIMIT_MS = 300_000

const startedAtMs = performance.now()
const stamp = () => `${((performance.now() - startedAtMs) / 1000).toFixed(1).padStart(6)} s`
const say = (text) => console.log(`${stamp()}  ${text}`)

const tools = {
  prometheus: findProgram('prometheus'),
  alertmanager: findProgram('alertmanager') ?? findProgram('prometheus-alertmanager'),
  promtool: findProgram('promtool'),
  amtool: findProgram('amtool'),
}

const folder = mkdtempSync(join(tmpdir(), 'sluice-alerts-'))

/** Starts a program, its log in the folder, and waits until it answers there. */
async function launch(name, command, url) {
  await answering(url, start(command, { log: join(folder, `${name}.log`) }), name)
}

function write(name, text) {
  const file = join(folder, name)
  writeFileSync(file, text)
  return file
}

function sluiceConfig({ traffic, admin, engines }) {
  return stringify({
    listen: `127.0.0.1:${traffic}`,
    admin: { listen: `127.0.0.1:${admin}` },
    mode: 'enforce',
    models: [{ name: 'demo', profile: PROFILE, replicas: engines.map((port) => `http://127.0.0.1:${port}`) }],
    classes: { chat: { ttft: '500ms', tpot: '50ms', objective: '99%' } },
    default_class: 'chat',
    auth: 'none',
  })
}

/** The example configuration with its delays shortened and its webhooks turned to ours. */
function alertmanagerConfig(port) {
  const config = parse(readFileSync(join(ROOT, 'config', 'alertmanager.yml'), 'utf8'))
  for (const route of [config.route, ...config.route.routes]) {
    route.group_wait = '1s'
    route.group_interval = '2s'
  }
  for (const receiver of config.receivers) {
    for (const hook of receiver.webhook_configs) hook.url = `http://127.0.0.1:${port}/${receiver.name}`
  }
  return stringify(config)
}

function prometheusConfig(admin, alertmanager, rules) {
  return stringify({
    global: { scrape_interval: '1s', evaluation_interval: '1s' },
    rule_files: [rules],
    alerting: { alertmanagers: [{ static_configs: [{ targets: [`127.0.0.1:${alertmanager}`] }] }] },
    scrape_configs: [{ job_name: 'sluice', static_configs: [{ targets: [`127.0.0.1:${admin}`] }] }],
  })
}

async function startAll(webhookPort) {
  const [traffic, admin, prometheus, alertmanager, ...engines] = await Promise.all(
    Array.from({ length: 6 }, freePort),
  )
  const sluice = write('sluice.yaml', sluiceConfig({ traffic, admin, engines }))
  const [rules, tests] = [join(folder, 'rules.yml'), join(folder, 'rules.test.yml')]
  execFileSync(
    process.execPath,
    [MAIN, 'export', 'prometheus', '-c', sluice, '-o', rules, '--tests', tests],
    { stdio: 'ignore' },
  )
  const routes = write('alertmanager.yml', alertmanagerConfig(webhookPort))
  const scrape = write('prometheus.yml', prometheusConfig(admin, alertmanager, rules))
  execFileSync(tools.promtool, ['check', 'config', scrape])
  execFileSync(tools.promtool, ['test', 'rules', tests])
  execFileSync(tools.amtool, ['check-config', routes])
  say('promtool and amtool accept rules, their tests and both configurations')
  const sluiceWith = (...args) => [process.execPath, MAIN, ...args]
  const engine = (port) => sluiceWith('engine', '--profile', PROFILE, '--model', 'demo', '--port', port)
  await Promise.all(
    engines.map((port) => launch(`engine-${port}`, engine(port), `http://127.0.0.1:${port}/health`)),
  )
  await launch('sluice', sluiceWith('serve', '-c', sluice), `http://127.0.0.1:${admin}/readyz`)
  const alerts = [
    `--config.file=${routes}`,
    `--storage.path=${join(folder, 'alertmanager')}`,
    `--web.listen-address=127.0.0.1:${alertmanager}`,
    '--cluster.listen-address=',
  ]
  await launch('alertmanager', [tools.alertmanager, ...alerts], `http://127.0.0.1:${alertmanager}/-/ready`)
  const scraper = [
    `--config.file=${scrape}`,
    `--storage.tsdb.path=${join(folder, 'tsdb')}`,
    `--web.listen-address=127.0.0.1:${prometheus}`,
  ]
  await launch('prometheus', [tools.prometheus, ...scraper], `http://127.0.0.1:${prometheus}/-/ready`)
  return { traffic, prometheus }
}

let serial = 0
const counts = { answered: 0, refused: 0 }

/** One streamed request; each prompt is its own, so that nothing is cached. */
async function ask(port, { promptWords, maxTokens }) {
  const words = Array.from({ length: promptWords }, (_, place) => `word${(serial * 7919 + place) % 9973}`)
  serial += 1
  const response = await fetch(`http://127.0.0.1:${port}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      model: 'demo',
      stream: true,
      max_tokens: maxTokens,
      messages: [{ role: 'user', content: `${serial} ${words.join(' ')}` }],
    }),
  })
  counts[response.ok ? 'answered' : 'refused'] += 1
  await response.arrayBuffer()
}

/** Sends at a steady rate, whatever comes back, until `until` says so or the time is over. */
async function send(port, shape, limitMs, until = () => false) {
  const beganAtMs = performance.now()
  const under = new Set()
  for (let sent = 0; !until(); sent += 1) {
    const dueAtMs = beganAtMs + (sent * 1000) / shape.perSec
    if (dueAtMs - beganAtMs > limitMs) break
    await sleep(Math.max(0, dueAtMs - performance.now()))
    const request = ask(port, shape).catch(() => undefined)
    under.add(request)
    void request.then(() => under.delete(request))
  }
  await Promise.all(under)
}

/** The value of a query now, or a dash. */
async function now(port, query) {
  const url = `http://127.0.0.1:${port}/api/v1/query?query=${encodeURIComponent(query)}`
  const { data } = await fetch(url).then((response) => response.json())
  return data.result[0] === undefined ? '-' : Number(data.result[0].value[1]).toFixed(1)
}

async function situation(port) {
  const burn = await now(port, 'slo:current_burn_rate:ratio{sli="all"}')
  return `burn rate ${burn}, replicas wanted ${await now(port, 'sum(sluice_desired_replicas)')}`
}

function checkPage(page) {
  const text = JSON.stringify(page.annotations)
  if (/error expanding|<no value>|NaN/.test(text)) throw new Error(`annotations are not sound: ${text}`)
  const anchor = page.annotations.runbook_url.split('#')[1]
  const headings = readFileSync(join(ROOT, 'docs', 'runbook.md'), 'utf8').match(/^#+ .*$/gm) ?? []
  if (!headings.some((heading) => heading.replace(/^#+ /, '').toLowerCase() === anchor)) {
    throw new Error(`the runbook has no heading for #${anchor}`)
  }
}

async function story({ traffic, prometheus }, heard) {
  const paged = (status) =>
    heard.find(({ labels, status: now }) => labels.alertname === PAGE && now === status)
  say(`healthy: ${HEALTHY.perSec} short requests a second`)
  await send(traffic, HEALTHY, HEALTHY_MS)
  if (heard.length > 0) throw new Error('an alert fired before anything was wrong')
  say(
    `${await situation(prometheus)}; overload: ${OVERLOAD.perSec} long prompts a second for ${OVERLOAD_MS / 1000} s`,
  )
  const overloadAtMs = performance.now()
  const before = counts.refused
  await Promise.all([send(traffic, OVERLOAD, OVERLOAD_MS), send(traffic, HEALTHY, OVERLOAD_MS)])
  say(`overload over: ${counts.refused - before} refused; ${await situation(prometheus)}`)
  const overAtMs = performance.now()
  await send(traffic, HEALTHY, PAGE_LIMIT_MS, () => paged('firing') !== undefined)
  const page = paged('firing')
  if (page === undefined) throw new Error(`no page within ${PAGE_LIMIT_MS / 1000} s of the overload`)
  checkPage(page)
  const pagedAfterMs = Date.parse(page.startsAt) - (Date.now() - (performance.now() - overloadAtMs))
  await send(traffic, HEALTHY, CLEAR_LIMIT_MS, () => paged('resolved') !== undefined)
  if (paged('resolved') === undefined)
    throw new Error(`the page did not clear within ${CLEAR_LIMIT_MS / 1000} s`)
  const clearedAfterMs = performance.now() - overAtMs
  say(`${await situation(prometheus)}; ${counts.answered} answered and ${counts.refused} refused in all`)
  return { pagedAfterMs, clearedAfterMs }
}

async function main() {
  const missing = Object.entries(tools).filter(([, path]) => path === undefined)
  if (missing.length > 0) {
    console.log(`SKIPPED test:alerts: ${missing.map(([name]) => name).join(', ')} not found on the path.`)
    console.log('Install them, e.g. on Debian: apt-get install prometheus prometheus-alertmanager')
    return
  }
  const webhook = await startWebhook(say)
  try {
    const { pagedAfterMs, clearedAfterMs } = await story(await startAll(webhook.port), webhook.heard)
    const seconds = (ms) => (ms / 1000).toFixed(1)
    console.log(
      `\nThe page fired ${seconds(pagedAfterMs)} s after the overload began and cleared ${seconds(clearedAfterMs)} s after it was over.`,
    )
    console.log('1 passed, 0 failed')
  } catch (error) {
    console.log(`FAILED: ${error.stack ?? error}`)
    console.log('0 passed, 1 failed')
    process.exitCode = 1
  } finally {
    webhook.close()
    await stopAll()
    rmSync(folder, { recursive: true, force: true })
  }
}

await main()
process.exit()
