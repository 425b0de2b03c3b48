/** Measures what watching 100 replicas at 2 Hz costs: parsing alone, and the whole scrape over sockets. Run: npm run bench:scrape */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { cpus } from 'node:os'
import { fileURLToPath } from 'node:url'
import { coreShare } from './core-share.mjs'

const PAGE = new URL('../test/fixtures/engines/vllm-0.32.0/metrics-under-load.txt', import.meta.url)
const REPLICAS = 100
const PERIOD_MS = 500
const SLICES = 10
const SLICE_MS = 1000
/** Share of one core that the whole may cost. */
const BUDGET_RATIO = 0.1

/** The engines' side, in a process of its own: one server that prints the page. */
function serve() {
  const page = readFileSync(PAGE)
  const server = createServer((request, response) => {
    const known = request.url === '/metrics'
    response.writeHead(known ? 200 : 404, { 'content-type': 'text/plain; version=1.0.0; charset=utf-8' })
    response.end(known ? page : '')
  })
  server.keepAliveTimeout = 5000
  server.listen(0, '127.0.0.1', () => process.send(server.address().port))
  process.on('disconnect', () => process.exit(0))
}

function parseCost(vllm) {
  const text = readFileSync(PAGE, 'latin1')
  const buffer = readFileSync(PAGE)
  const rounds = 3000
  for (let round = 0; round < 500; round += 1) vllm.parseLoad(text)
  const cpu = process.cpuUsage()
  for (let round = 0; round < rounds; round += 1) vllm.parseLoad(buffer.toString('latin1'))
  return { pageBytes: buffer.length, parseUs: process.cpuUsage(cpu).user / rounds }
}

async function scrapeCost(createFleet) {
  const child = fork(fileURLToPath(import.meta.url), ['serve'])
  const [port] = await once(child, 'message')
  // One address under a hundred keys is a hundred replicas, each with sockets, breaker and scraper of its own.
  const url = `http://127.0.0.1:${port}`
  const replicas = Array.from({ length: REPLICAS }, (_, index) => ({
    kind: 'url',
    url,
    key: `k${index}`,
    engine: 'vllm',
  }))
  let reports = 0
  const fleet = createFleet({
    config: {
      models: [{ name: 'm', servedName: 'm', engineArgs: {}, replicas }],
      timeouts: { connectMs: 1000, drainMs: 1000 },
    },
    tuning: { scrapePeriodMs: PERIOD_MS },
    onReport: () => {
      reports += 1
    },
    onRemoved: () => undefined,
  })
  await new Promise((resolve) => setTimeout(resolve, 3000))
  reports = 0
  const { best, median, spanMs, userUs, systemUs } = await coreShare(SLICES, SLICE_MS)
  const scrapes = reports
  await fleet.close()
  child.disconnect()
  return {
    scrapesPerSec: (scrapes * 1000) / spanMs,
    userUsPerScrape: userUs / scrapes,
    systemUsPerScrape: systemUs / scrapes,
    coreRatioBest: best,
    coreRatioMedian: median,
  }
}

async function main() {
  const { vllm } = await import('../dist/engines/vllm.js')
  const { createFleet } = await import('../dist/upstream/fleet.js')
  const result = {
    replicas: REPLICAS,
    periodMs: PERIOD_MS,
    ...parseCost(vllm),
    ...(await scrapeCost(createFleet)),
    budgetRatio: BUDGET_RATIO,
    cores: cpus().length,
  }
  const show = (value) => (typeof value === 'number' ? Number(value.toPrecision(4)) : value)
  console.table(Object.fromEntries(Object.entries(result).map(([name, value]) => [name, show(value)])))
  console.log(JSON.stringify(result))
}

if (process.argv[2] === 'serve') serve()
else await main()
