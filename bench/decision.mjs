/**
 * What a decision costs: one event of the gate with all its effects, with our scheduler on, in a state that is held.
 * Run: npm run bench:decision. Ends with 1 when the p99 over all events misses its bound. Takes a minute or two.
 */
import { cpus } from 'node:os'
import { parseArgs } from 'node:util'
import { Stage } from './decision/stage.mjs'
import { asText } from './goodput/layout.mjs'
import { quantile } from './goodput/stats.mjs'

const PROFILE = 'Llama-3.1-8B/H100-80G-SXM/tp1'
/** Requests a second that such a replica finishes with 128 streams of the five workloads, about; arrivals follow from it. */
const RATE_PER_REPLICA = 30
const STATES = [
  { name: 'small', replicas: 32, streams: 128, waiting: 200, boundUs: 100, warmMs: 8000, measuredMs: 4000 },
  {
    name: 'large',
    replicas: 256,
    streams: 128,
    waiting: 2000,
    boundUs: 1000,
    warmMs: 8000,
    measuredMs: 1000,
  },
]
const KINDS = ['offer', 'firstToken', 'progress', 'settle', 'replicaChanged', 'tick']

const { values: options } = parseArgs({
  options: {
    state: { type: 'string', default: '' },
    'time-ratio': { type: 'string', default: '1' },
    clock: { type: 'string', default: 'wall' },
  },
})
const CLOCKS = { wall: () => performance.now() * 1000, cpu: () => process.cpuUsage().user }

const mean = (values) => values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length)

function measure(state, timeRatio, clock) {
  const took = new Map(KINDS.map((kind) => [kind, []]))
  const [waiting, streams] = [[], []]
  const stage = new Stage({ ...state, ratePerReplica: RATE_PER_REPLICA, profileId: PROFILE, seed: 1, clock })
  const warmMs = state.warmMs * timeRatio
  stage.runUntil(warmMs)
  const before = { ...stage.gate.counts }
  stage.listen = (kind, us) => {
    took.get(kind).push(us)
    waiting.push(stage.waiting)
    streams.push(stage.streams / state.replicas)
  }
  stage.runUntil(warmMs + state.measuredMs * timeRatio)
  const counts = stage.gate.counts
  const held = {
    streams: mean(streams),
    waiting: mean(waiting),
    shedRatio: (counts.shed - before.shed) / (counts.offered - before.offered),
  }
  return { held, rows: [...took, ['all', [...took.values()].flat()]].map(([kind, us]) => rowOf(kind, us)) }
}

function rowOf(kind, us) {
  const at = (share) => quantile(us, share) ?? Number.NaN
  return { kind, events: us.length, p50Us: at(0.5), p99Us: at(0.99), maxUs: at(1) }
}

function show(state, { held, rows }) {
  const us = (value) => (value === undefined || Number.isNaN(value) ? '–' : value.toFixed(1))
  const all = rows.at(-1)
  return asText({
    title: `${state.replicas} replicas, ${held.streams.toFixed(0)} streams each, ${held.waiting.toFixed(0)} waiting; ${(100 * held.shedRatio).toFixed(0)} % of offers shed`,
    head: ['event', 'events', 'p50 µs', 'p99 µs', 'max µs'],
    rows: rows.map(({ kind, events, p50Us, p99Us, maxUs }) => [
      kind,
      events,
      us(p50Us),
      us(p99Us),
      us(maxUs),
    ]),
    notes: [
      `p99 over all ${us(all.p99Us)} µs, wanted below ${state.boundUs}: ${all.p99Us < state.boundUs ? 'met' : 'MISSED'}`,
    ],
  })
}

console.log(`Node ${process.version}, ${cpus().length} x ${cpus()[0]?.model ?? 'unknown CPU'}\n`)
const results = []
for (const state of STATES.filter(({ name }) => options.state === '' || options.state === name)) {
  const result = measure(state, Number(options['time-ratio']), CLOCKS[options.clock])
  results.push({ ...state, ...result })
  console.log(`${show(state, result)}\n`)
}
console.log(JSON.stringify(results))
if (results.some(({ rows, boundUs }) => !(rows.at(-1).p99Us < boundUs))) process.exitCode = 1
