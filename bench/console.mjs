/** Measures what open consoles cost: CPU of the admin port with ten viewers less that without any, under steady traffic. Run: npm run bench:console */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { get } from 'node:http'
import { cpus } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

const VIEWERS = 10
/** Share of one core that ten viewers may cost. */
const BUDGET_RATIO = 0.01
const SLICES = 8
const SLICE_MS = 2000
const REQUESTS_PER_SEC = 50
const FLEETS = [
  { name: 'usual', classes: 5, replicas: 8 },
  { name: 'large', classes: 20, replicas: 100 },
]

/** The browsers' side, in a process of its own: takes everything and looks at nothing. */
function view(port) {
  let bytes = 0
  let joined = 0
  for (let viewer = 0; viewer < VIEWERS; viewer += 1) {
    get({ host: '127.0.0.1', port, path: '/live', agent: false }, (response) => {
      response.on('data', (chunk) => {
        bytes += chunk.length
      })
      response.once('data', () => {
        joined += 1
        if (joined === VIEWERS) process.send('joined')
      })
    })
  }
  process.on('message', () => process.send(bytes))
  process.on('disconnect', () => process.exit(0))
}

function classesOf(count) {
  return Array.from({ length: count }, (_, index) => ({
    name: `class-${index}`,
    ttftMs: 500,
    ttftPer1kTokensMs: 0,
    tpotMs: 50,
    objectiveRatio: 0.99,
    weight: 1,
    overload: 'shed',
    maxWaitMs: 1000,
  }))
}

function replicasOf(count, nowMs) {
  return Array.from({ length: count }, (_, index) => ({
    id: `model-${index}`,
    name: `model-${index}`,
    models: ['model'],
    state: 'live',
    generation: 1,
    limits: {},
    gauges: {
      seenAtMs: nowMs - (index % 500),
      runningRequests: 8,
      waitingRequests: 0,
      kvUsageRatio: ((index * 37 + nowMs / 1000) % 100) / 100,
    },
    ledger: {
      inFlightRequests: Math.round(nowMs / 700 + index) % 24,
      prefillingRequests: 1,
      decodingSequences: 7,
      backlogTokens: Math.round(nowMs / 3 + index * 91) % 4000,
      contextTokens: 9000,
    },
  }))
}

/** Feeds an observer with requests as they would end; about one in eight is refused. */
function feed(observer, judge, classes, replicas) {
  let number = 0
  const one = () => {
    number += 1
    const slo = classes[number % classes.length]
    const requestId = `request-${number}`
    const shed = number % 8 === 0
    const replicaId = `model-${number % replicas}`
    const nowMs = performance.now()
    const offer = {
      requestId,
      pool: 'model',
      kind: 'generate',
      tenant: 'tenant',
      product: 'none',
      slo,
      route: 'chat',
      receivedAtMs: nowMs - 3000,
      promptTokens: 200 + (number % 900),
      promptTokensExact: false,
      sequences: 1,
      prefixHashes: [],
      prefixBlockTokens: 256,
      bodyBytes: 800,
      streamed: true,
      retryCount: 0,
    }
    const candidates = Array.from({ length: Math.min(8, replicas) }, (_, index) => ({
      replicaId: `model-${(number + index) % replicas}`,
      predictedTtftMs: 200 + index * 40,
      boundTtftMs: 250 + index * 50,
      uncachedTokens: 200,
      backlogTokens: 100 * index,
      runningSequences: 7,
      gate: 'ok',
    }))
    const verdict = shed
      ? { kind: 'shed', reason: 'slo_unreachable', retryAfterMs: 1200 }
      : { kind: 'admit', replicaId, permitId: number }
    const common = { version: 1, offer, configDigest: 'bench' }
    observer.onDecision({
      ...common,
      atMs: nowMs - 2900,
      attempt: 1,
      waitedMs: 20,
      trusted: true,
      candidates,
      verdict,
    })
    const facts = shed
      ? { outcome: 'shed', shedReason: 'slo_unreachable', e2eMs: 20, outputTokens: 0 }
      : {
          outcome: 'completed',
          ttftMs: 150 + (number % 400),
          tpotMs: 20 + (number % 35),
          e2eMs: 3000,
          outputTokens: 90,
        }
    const rest = { promptTokens: offer.promptTokens, slowReader: false }
    observer.onSettled({
      ...common,
      requestId,
      ...facts,
      ...rest,
      attempts: shed ? 0 : 1,
      queueMs: 20,
      countedBy: 'usage',
      ...(shed ? {} : { replicaId, predictedTtftMs: 210 }),
      verdict: judge({ offer, ...facts, ...rest }),
    })
  }
  for (let index = 0; index < 2000; index += 1) one()
  const timer = setInterval(one, 1000 / REQUESTS_PER_SEC)
  return () => clearInterval(timer)
}

async function adminOf({ classes: classCount, replicas: replicaCount }) {
  const { createAdaptorServer } = await import('@hono/node-server')
  const { createAdminApp } = await import('../dist/admin/app.js')
  const { createObserver } = await import('../dist/telemetry/observer.js')
  const { createLog } = await import('../dist/telemetry/log.js')
  const { judge } = await import('../dist/slo/judge.js')
  const classes = classesOf(classCount)
  const nowMs = () => performance.now()
  const samples = {
    replicas: () => replicasOf(replicaCount, nowMs()),
    waiting: () => ({ requests: 40, tokens: 30_000, bytes: 120_000 }),
    trust: () => [{ model: 'model', state: 'trusted' }],
    runtime: () => ({
      loopLag: { p50Ms: 0, p99Ms: 0, maxMs: 0 },
      cpuSec: 0,
      residentBytes: 0,
      startedAtUnixSec: 0,
    }),
  }
  const catalog = {
    models: ['model'],
    classes: classes.map(({ name }) => name),
    products: ['none'],
    classFor: (name) => classes.find((slo) => slo.name === name),
    periodMs: 30 * 86_400_000,
  }
  const observer = createObserver({
    catalog,
    ports: samples,
    build: { version: 'bench', nodeVersion: process.version },
    log: createLog({ level: 'silent', nowMs }),
    nowMs,
    unixMs: Date.now,
  })
  const waitingByClass = () =>
    classes.map(({ name }, index) => ({
      class: name,
      requests: index + 1,
      tokens: 900,
      oldestMs: nowMs() % 1000,
    }))
  const app = createAdminApp({
    observer,
    samples,
    waitingByClass,
    version: 'bench',
    mode: () => 'enforce',
    configDigest: () => 'bench',
    configLoaded: () => true,
    draining: () => false,
    token: () => undefined,
    reload: async () => ({ ok: false, problems: [] }),
    predictor: () => null,
    advice: () => [],
    nowMs,
    unixMs: Date.now,
  })
  const server = createAdaptorServer({ fetch: app.fetch, overrideGlobalObjects: false })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const stopFeed = feed(observer, judge, classes, replicaCount)
  return {
    port: server.address().port,
    close: () => {
      stopFeed()
      server.closeAllConnections()
      server.close()
    },
  }
}

/** Neighbours on the machine only ever add to CPU time, so the cheapest slice is the nearest to the truth. */
async function coreRatios() {
  const ratios = []
  for (let slice = 0; slice < SLICES; slice += 1) {
    const cpu = process.cpuUsage()
    const startMs = performance.now()
    await sleep(SLICE_MS)
    const used = process.cpuUsage(cpu)
    ratios.push((used.user + used.system) / 1000 / (performance.now() - startMs))
  }
  ratios.sort((a, b) => a - b)
  return { best: ratios[0], median: ratios[SLICES >> 1] }
}

async function measure(fleet) {
  const admin = await adminOf(fleet)
  await sleep(2000)
  const without = await coreRatios()
  const child = fork(fileURLToPath(import.meta.url), ['view', String(admin.port)])
  await once(child, 'message')
  // The first drawings are compiled.
  await sleep(3000)
  const bytesAt = async () => {
    child.send('bytes')
    return (await once(child, 'message'))[0]
  }
  const before = await bytesAt()
  const startMs = performance.now()
  const watched = await coreRatios()
  const bytes = (await bytesAt()) - before
  child.disconnect()
  admin.close()
  return {
    ...fleet,
    withoutMedian: without.median,
    withViewersMedian: watched.median,
    costMedian: watched.median - without.median,
    costBest: watched.best - without.best,
    kbPerViewerPerSec: bytes / VIEWERS / (performance.now() - startMs),
  }
}

async function main() {
  const rows = []
  for (const fleet of FLEETS) rows.push(await measure(fleet))
  const show = (value) => (typeof value === 'number' ? Number(value.toPrecision(3)) : value)
  console.log(
    `${VIEWERS} viewers, ${REQUESTS_PER_SEC} requests/s; shares of one core; budget ${BUDGET_RATIO}`,
  )
  console.table(
    rows.map((row) => Object.fromEntries(Object.entries(row).map(([name, value]) => [name, show(value)]))),
  )
  console.log(JSON.stringify({ viewers: VIEWERS, budgetRatio: BUDGET_RATIO, cores: cpus().length, rows }))
}

if (process.argv[2] === 'view') view(Number(process.argv[3]))
else await main()
