/** One chaos run: engines and Sluice start, the load comes, the storm blows, calm returns, and the laws are checked. */
import { openPool } from '../../src/load/exchange.ts'
import { Rng } from '../../src/sim/rng.ts'
import { sumOf, sumsBy } from '../support/page-sums.ts'
import { Clients } from './clients.ts'
import { type Evidence, leftoversOf, readLog, recoveredStates } from './evidence.ts'
import { ANSWER_TOKENS, MODEL, OF_THAT_LENGTH, SLOTS } from './scenario.ts'
import { type Stage, startStage } from './stage.ts'
import { FAULTS, type Pace, Storm } from './storm.ts'

export interface ChaosOptions {
  readonly durationMs: number
  readonly seed: number
  /** Times the capacity of the engines that is offered. */
  readonly load: number
  readonly pace: Pace
  /** Worker processes of Sluice; one process unless told. */
  readonly workers?: number
  /** Requests that the engines serve a second; measured first unless it is given. */
  readonly capacityPerSec?: number
  readonly say?: (line: string) => void
}

/** Faults for minutes, one after another with time to recover. */
export const LONG_PACE: Pace = {
  kinds: FAULTS,
  faultMs: [1000, 4000],
  restMs: 1500,
  reloadEveryMs: 4000,
  opensBreakers: true,
}
/** A handful of them for the ordinary test suite. */
export const SHORT_PACE: Pace = {
  kinds: ['truncating', 'slow', 'lying', 'paused', 'killed'],
  faultMs: [300, 800],
  restMs: 100,
  reloadEveryMs: 400,
  opensBreakers: false,
}

const CALIBRATION_MS = 1500
/** Share of clients that leave or ask nonsense. */
const ODD_RATIO = 0.2
const CALM_PER_SEC = 10
const CALM_MS = 1500
const CLIENTS_LIMIT_MS = 40_000
const RECOVERY_LIMIT_MS = 40_000

export async function runChaos(options: ChaosOptions): Promise<Evidence> {
  const { seed, durationMs, load, pace, workers = 1, say = () => {} } = options
  const rng = new Rng(seed)
  const stage = await startStage(seed, workers)
  try {
    const capacityPerSec = options.capacityPerSec ?? (await capacityOf(stage))
    await stage.startSluice()
    const offeredPerSec = load * capacityPerSec
    say(`the engines serve ${capacityPerSec.toFixed(1)} requests/s; ${offeredPerSec.toFixed(1)} are offered`)
    const watch = stopwatch(say)
    const clients = new Clients({ url: stage.url, rng: rng.fork('clients'), oddRatio: ODD_RATIO })
    await recoveredStates(stage, RECOVERY_LIMIT_MS)
    await clients.arrive(CALM_PER_SEC, lasting(CALM_MS / 3), 'calm')
    await clients.settled(CLIENTS_LIMIT_MS)
    watch('warm')
    const before = await stage.holdings()
    const storm = new Storm({ stage, rng: rng.fork('storm'), pace, say })
    const startedAtMs = Date.now()
    await Promise.all([storm.blow(durationMs), clients.arrive(offeredPerSec, () => !storm.over)])
    watch('the storm is over')
    await clients.settled(CLIENTS_LIMIT_MS)
    watch('every client is')
    const states = await recoveredStates(stage, RECOVERY_LIMIT_MS)
    watch('every replica is back')
    const calm = new Clients({ url: stage.url, rng: rng.fork('calm'), oddRatio: 0, prefix: 'calm' })
    await calm.arrive(CALM_PER_SEC, lasting(CALM_MS), 'calm')
    await calm.settled(CLIENTS_LIMIT_MS)
    await Promise.all([clients.close(), calm.close()])
    const leftovers = await leftoversOf(stage)
    watch('nothing is left, or not for long')
    const after = await stage.holdings()
    const page = await stage.metrics()
    const exit = await stage.sluice.end()
    return {
      startedAtMs,
      pace,
      capacityPerSec,
      offeredPerSec,
      clients: clients.records,
      calmClients: calm.records,
      lines: readLog(stage.sluice.out),
      faults: storm.faults,
      pages: [...storm.pages.values()].reduce((sum, count) => sum + count, 0),
      reloads: storm.reloads,
      outcomes: sumsBy(page, 'sluice_requests_total', 'outcome'),
      rejections: sumsBy(page, 'sluice_rejected_requests_total', 'reason'),
      ownFaults: sumOf(page, 'sluice_faults_total'),
      leftovers,
      before,
      after,
      states,
      stderr: stage.sluice.err,
      exit,
    }
  } finally {
    await stage.close()
  }
}

/** True for that long. */
function lasting(forMs: number): () => boolean {
  const endAtMs = performance.now() + forMs
  return () => performance.now() < endAtMs
}

/** Says how long each part took. */
function stopwatch(say: (line: string) => void): (part: string) => void {
  let lastMs = performance.now()
  return (part) => {
    const nowMs = performance.now()
    say(`${part}: ${((nowMs - lastMs) / 1000).toFixed(1)} s`)
    lastMs = nowMs
  }
}

/** What the engines serve a second when each is kept exactly full, asked directly. */
async function capacityOf(stage: Stage): Promise<number> {
  const body = JSON.stringify({
    model: MODEL,
    messages: [{ role: 'user', content: 'word '.repeat(100) }],
    stream: true,
    max_tokens: ANSWER_TOKENS,
    ...OF_THAT_LENGTH,
  })
  const endAtMs = performance.now() + CALIBRATION_MS
  let served = 0
  const slot = async (url: string) => {
    const pool = openPool(url)
    while (performance.now() < endAtMs) {
      await drained(pool, body)
      served += 1
    }
    await pool.destroy()
  }
  const startMs = performance.now()
  await Promise.all(stage.urls.flatMap((url) => Array.from({ length: SLOTS }, () => slot(url))))
  return (served * 1000) / (performance.now() - startMs)
}

async function drained(pool: ReturnType<typeof openPool>, body: string): Promise<void> {
  const headers = { 'content-type': 'application/json' }
  const answer = await pool.request({ path: '/v1/chat/completions', method: 'POST', headers, body })
  await answer.body.dump()
}
