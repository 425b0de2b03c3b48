/** Measures how long a scrape of /metrics blocks the loop, with many classes, models and replicas. Run: npm run bench:metrics */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { cpus } from 'node:os'
import { fileURLToPath } from 'node:url'
import { quantile } from './goodput/stats.mjs'

/** Each model has every class; `npm run bench:metrics -- 4` for four of them. */
const MODELS = Number(process.argv[2] ?? 1) || 1
const CLASSES = 20
const PRODUCTS = 3
const REPLICAS = 100
const REQUESTS_EACH = 20
const WARM_SCRAPES = 5
const SCRAPES = 40
/** Time between scrapes, in which the loop is watched all the same: what blocks it then is not ours. */
const PAUSE_MS = 250
/** The longest that a scrape may block the loop. */
const BUDGET_MS = 5

/** The scraper's side, in a process of its own. */
async function scrape(url) {
  for (;;) {
    const [message] = await once(process, 'message')
    const response = await fetch(url)
    process.send({ message, bytes: (await response.text()).length })
  }
}

const named = (prefix, count) => Array.from({ length: count }, (_, at) => `${prefix}${at}`)

function catalog() {
  const slo = {
    name: 'c0',
    ttftMs: 500,
    ttftPer1kTokensMs: 0,
    tpotMs: 50,
    e2eMs: 20_000,
    objectiveRatio: 0.99,
    weight: 1,
    overload: 'shed',
    maxWaitMs: 1000,
  }
  const classes = named('c', CLASSES)
  return {
    models: named('m', MODELS),
    classes,
    products: [...named('p', PRODUCTS - 1), 'none'],
    tenants: named('t', 10),
    classFor: (name) => (classes.includes(name) ? { ...slo, name } : undefined),
    periodMs: 30 * 86_400_000,
  }
}

function replica(at) {
  return {
    id: `http://10.0.0.${at}:8000`,
    name: `m${at % MODELS}-${at}`,
    models: [`m${at % MODELS}`],
    state: 'live',
    generation: 0,
    limits: {},
    connections: 4,
    gauges: { seenAtMs: performance.now(), runningRequests: 3, waitingRequests: 1, kvUsageRatio: 0.4 },
    ledger: {
      inFlightRequests: 4,
      prefillingRequests: 1,
      decodingSequences: 3,
      backlogTokens: 900,
      contextTokens: 9000,
    },
  }
}

async function observed() {
  const [{ createObserver }, { createLog }, { startRuntimeMonitor }] = await Promise.all([
    import('../dist/telemetry/observer.js'),
    import('../dist/telemetry/log.js'),
    import('../dist/telemetry/runtime.js'),
  ])
  const monitor = startRuntimeMonitor()
  const nowMs = () => performance.now()
  const observer = createObserver({
    catalog: catalog(),
    ports: {
      replicas: () => Array.from({ length: REPLICAS }, (_, at) => replica(at)),
      waiting: () => ({ requests: 0, tokens: 0, bytes: 0 }),
      trust: () => named('m', MODELS).map((model) => ({ model, state: 'trusted' })),
      runtime: () => monitor.sample(),
      replicasWanted: () => 12.5,
    },
    build: { version: '0', nodeVersion: process.version },
    log: createLog({ level: 'silent', nowMs }),
    nowMs,
    unixMs: Date.now,
  })
  fill(observer)
  return { observer, monitor }
}

function fill(observer) {
  const { models, classes, products, classFor } = catalog()
  for (const model of models)
    for (const className of classes)
      for (const product of products)
        for (let request = 0; request < REQUESTS_EACH; request += 1)
          observer.onSettled(settlement(model, classFor(className), product, request))
}

function settlement(pool, slo, product, request) {
  const good = request % 10 !== 0
  const offer = {
    requestId: `${pool}${slo.name}${product}${request}`,
    pool,
    kind: 'generate',
    tenant: `t${request % 10}`,
    product,
    slo,
    route: 'chat',
    receivedAtMs: 0,
    promptTokens: 500,
    promptTokensExact: true,
    sequences: 1,
    prefixHashes: [],
    prefixBlockTokens: 256,
    bodyBytes: 2000,
    streamed: true,
    retryCount: 0,
  }
  return {
    version: 1,
    requestId: offer.requestId,
    offer,
    outcome: 'completed',
    attempts: 1,
    queueMs: 2,
    ttftMs: 200 + 17 * request,
    predictedTtftMs: 220,
    tpotMs: 20 + request,
    e2eMs: 3000,
    promptTokens: 500,
    outputTokens: 100,
    countedBy: 'usage',
    verdict: { kind: good ? 'good' : 'bad', ttftGood: good, tpotGood: true, e2eGood: true },
  }
}

function cpuMs() {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000
}

/**
 * The longest turn of the loop until `done` settles: in ms between two turns, and in ms of CPU in one turn (of all
 * threads, so what collects garbage beside the loop counts too). Neighbours on the machine lengthen the first only.
 */
async function longestTurn(done) {
  let over = false
  done.finally(() => {
    over = true
  })
  const longest = { wallMs: 0, cpuMs: 0 }
  let [lastMs, lastCpuMs] = [performance.now(), cpuMs()]
  while (!over) {
    await new Promise((resolve) => setImmediate(resolve))
    const [nowMs, nowCpuMs] = [performance.now(), cpuMs()]
    longest.wallMs = Math.max(longest.wallMs, nowMs - lastMs)
    longest.cpuMs = Math.max(longest.cpuMs, nowCpuMs - lastCpuMs)
    lastMs = nowMs
    lastCpuMs = nowCpuMs
  }
  return longest
}

async function main() {
  const { createAdminApp } = await import('../dist/admin/app.js')
  const { createAdaptorServer } = await import('@hono/node-server')
  const { observer, monitor } = await observed()
  const app = createAdminApp({ observer, token: () => undefined, nowMs: () => performance.now() })
  const server = createAdaptorServer({ fetch: app.fetch, overrideGlobalObjects: false })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${server.address().port}/metrics`
  const child = fork(fileURLToPath(import.meta.url), ['scrape', url])
  const turns = []
  const idle = []
  let bytes = 0
  const ask = async () => {
    child.send('go')
    const [answer] = await once(child, 'message')
    bytes = answer.bytes
  }
  for (let at = 0; at < WARM_SCRAPES + SCRAPES; at += 1) {
    const busy = await longestTurn(ask())
    const free = await longestTurn(new Promise((resolve) => setTimeout(resolve, PAUSE_MS)))
    if (at < WARM_SCRAPES) continue
    turns.push(busy)
    idle.push(free)
  }
  const page = await (await fetch(url)).text()
  child.kill()
  server.close()
  server.closeAllConnections()
  monitor.close()
  report(turns, idle, bytes, page.split('\n').filter((line) => line !== '' && !line.startsWith('#')).length)
}

function report(turns, idle, bytes, series) {
  const shape = { models: MODELS, classes: CLASSES, products: PRODUCTS, replicas: REPLICAS, series, bytes }
  const spans = (of, kind) => {
    const values = of.map((turn) => turn[kind])
    return { p50Ms: quantile(values, 0.5), p90Ms: quantile(values, 0.9), maxMs: Math.max(...values) }
  }
  const tables = {
    'CPU, while scraped': spans(turns, 'cpuMs'),
    'CPU, between scrapes': spans(idle, 'cpuMs'),
    'wall, while scraped': spans(turns, 'wallMs'),
    'wall, between scrapes': spans(idle, 'wallMs'),
  }
  const result = {
    ...shape,
    scrapes: turns.length,
    longestTurn: tables,
    budgetMs: BUDGET_MS,
    cores: cpus().length,
  }
  console.table(tables)
  console.log(`${series} series, ${(bytes / 1024).toFixed(0)} KiB; budget ${BUDGET_MS} ms a turn`)
  console.log(JSON.stringify(result))
}

if (process.argv[2] === 'scrape') await scrape(process.argv[3])
else await main()
