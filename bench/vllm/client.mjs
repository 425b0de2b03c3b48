/** A light open-loop client: sends each request at its instant, whatever became of the earlier ones. */
import http from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'

const PATH = '/v1/completions'
/** Below vLLM's own 5 s, so that no request is sent into a socket that is about to close. */
const IDLE_SOCKET_MS = 3000

/**
 * What became of one request. `outcome` is `finished` (200, every frame, end marker), `refused` (4xx, 5xx, or an error
 * frame before any content), `broken` (anything else) or `unfinished` (aborted when the run was over). Instants are
 * performance.now().
 */
function send(agent, port, request, scheduledAtMs, moreHeaders) {
  const seen = { ...request, body: undefined, scheduledAtMs, outcome: 'unfinished', frames: 0 }
  let sent
  const done = new Promise((resolve) => {
    const finish = (outcome) => {
      if (seen.endedAtMs !== undefined) return
      seen.endedAtMs = performance.now()
      seen.outcome = outcome
      resolve(seen)
    }
    const headers = {
      'content-type': 'application/json',
      'content-length': request.body.length,
      ...(request.className === undefined ? {} : { 'x-slo-class': request.className }),
      ...moreHeaders,
    }
    sent = http.request(
      { host: '127.0.0.1', port, path: PATH, method: 'POST', agent, headers },
      (response) => {
        seen.status = response.statusCode
        seen.headers = response.headers
        const reader = frameReader(seen)
        response.on('data', reader.read)
        response.on('end', () => finish(reader.outcome()))
        response.on('error', () => finish('broken'))
      },
    )
    sent.on('error', () => finish('broken'))
    sent.on('close', () => finish('broken'))
    sent.end(request.body)
  })
  return {
    done,
    /** Leaves, and keeps the outcome `unfinished`. */
    abandon: () => {
      if (seen.endedAtMs === undefined) {
        seen.endedAtMs = performance.now()
        sent.destroy()
      }
      return seen
    },
  }
}

/** Counts content frames and stamps the first and the last, without parsing them: the client must stay cheap. */
function frameReader(seen) {
  let rest = ''
  let ended = false
  let failed = false
  return {
    read: (bytes) => {
      const nowMs = performance.now()
      const lines = (rest + bytes.toString('latin1')).split('\n')
      rest = lines.pop()
      for (const line of lines) {
        if (!line.startsWith('data: ')) continue
        if (line.startsWith('data: [DONE]')) ended = true
        else if (line.startsWith('data: {"error"')) failed = true
        else if (line.includes('"text"')) {
          seen.frames++
          seen.firstAtMs ??= nowMs
          seen.lastAtMs = nowMs
        }
      }
    },
    outcome: () => {
      if (seen.status !== 200 || (failed && seen.frames === 0)) return 'refused'
      return ended && !failed ? 'finished' : 'broken'
    },
  }
}

const newAgent = () =>
  new http.Agent({ keepAlive: true, maxSockets: Number.POSITIVE_INFINITY, timeout: IDLE_SOCKET_MS })

/** Sends every arrival at its instant, then waits `graceMs` for the last ones. Returns one record a request. */
export async function runOpenLoop(port, arrivals, graceMs, moreHeaders = {}) {
  const agent = newAgent()
  const startMs = performance.now() + 50
  const flights = []
  for (const arrival of arrivals) {
    const dueMs = startMs + arrival.atMs
    const aheadMs = dueMs - performance.now()
    if (aheadMs > 1) await sleep(aheadMs)
    flights.push(send(agent, port, arrival, dueMs, moreHeaders))
  }
  await Promise.race([
    Promise.all(flights.map((flight) => flight.done)),
    sleep(graceMs, undefined, { ref: false }),
  ])
  const seen = flights.map((flight) => flight.abandon())
  agent.destroy()
  return seen
}

/**
 * Keeps `width` requests in flight and measures how many finish a second. The first `width` to finish started all at
 * once and don't count; the next `3 * width` do, or what finishes within `limitSeconds` in all. Throws when not even
 * the first ones finish in that time: then there is no rate to speak of.
 */
export async function saturate(port, nextRequest, width, limitSeconds, moreHeaders = {}) {
  const agent = newAgent()
  const startMs = performance.now()
  const untilMs = startMs + limitSeconds * 1000
  const over = new AbortController()
  const finishedAtMs = []
  const outcomes = {}
  const limit = sleep(limitSeconds * 1000, undefined, { signal: over.signal }).catch(() => undefined)
  const loop = async () => {
    while (performance.now() < untilMs && !over.signal.aborted) {
      const flight = send(agent, port, nextRequest(), performance.now(), moreHeaders)
      const seen = await Promise.race([flight.done, limit])
      flight.abandon()
      if (seen === undefined) return
      outcomes[seen.outcome] = (outcomes[seen.outcome] ?? 0) + 1
      if (seen.outcome === 'finished') finishedAtMs.push(seen.endedAtMs)
      else await sleep(50)
      if (finishedAtMs.length >= 4 * width) over.abort()
    }
  }
  await Promise.all(Array.from({ length: width }, loop))
  over.abort()
  agent.destroy()
  const counted = finishedAtMs.length - width
  if (counted < 1) {
    const told = JSON.stringify(outcomes)
    throw new Error(
      `of ${width} requests kept in flight, too few finished in ${limitSeconds} s to tell a rate: ${told}`,
    )
  }
  return (1000 * counted) / (finishedAtMs.at(-1) - finishedAtMs[width - 1])
}

/**
 * Sends `count` requests at once and waits for them all, so that a fresh engine is slow for them and not later. One with
 * a cap of its own may refuse some of them.
 */
export async function warmUp(port, nextRequest, count, limitSeconds) {
  const arrivals = Array.from({ length: count }, () => ({ atMs: 0, ...nextRequest() }))
  const seen = await runOpenLoop(port, arrivals, limitSeconds * 1000)
  const served = seen.filter(({ outcome }) => outcome === 'finished')
  const odd = seen.filter(({ outcome }) => outcome !== 'finished' && outcome !== 'refused')
  if (odd.length > 0 || served.length === 0)
    throw new Error(
      `the engine on port ${port}: of ${count} first requests ${served.length} finished, ${odd.length} broke`,
    )
}
