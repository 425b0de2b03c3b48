/**
 * The engine model against measured servers: how far its times are from what vLLM took on real GPUs.
 *
 *   npm run bench:engine-model -- --measured DIR       or SLUICE_MEASURED=DIR
 *   npm run bench:engine-model -- --vllm               a real vLLM on this CPU, two minutes on a quiet machine
 *
 * DIR holds any of these; what is missing is skipped and said:
 * - sharegpt-h200.jsonl, chatbot-synthetic-h200.jsonl from llm-d/llm-d-latency-predictor (benchmarks/traces at
 *   1808b5b), or the same rows as h200-qwen3-32b-{sharegpt,chatbot-synthetic}.csv[.gz] with the columns kv_used,
 *   prompt_tokens, waiting, running, prefill_tokens_in_flight, ttft_ms, tpot_ms: Qwen3-32B on one H200 a replica;
 * - lmbench-curves.csv and lmbench-sharegpt-requests.csv[.gz]: the LMBench runs of llm-d/llm-d-benchmark
 *   (collected/data/openshift at 77115656), one row a run (run, workload, replicas, qps, n, prompt_p50, output_p50,
 *   ttft_p50_s, ttft_p90_s, itl_p50_ms) and one a request (run, qps, arrival_s, prompt_tokens, output_tokens, ttft_s,
 *   generation_s): Llama-3.1-70B on two A100 or H100 a replica.
 * Prints tables; the figures go to --out (.bench/engine-model.json) as JSON. Takes about a minute.
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { fitParameters } from '../dist/replay/least-squares.js'
import { EngineModel } from '../dist/sim/engine-model.js'
import { profile } from '../dist/sim/profiles.js'
import { Rng } from '../dist/sim/rng.js'
import * as live from './engine-model/live.mjs'
import { parseCsv, parseStates, textOf } from './engine-model/measured.mjs'
import { checkRequests, checkShort } from './engine-model/replays.mjs'
import { checkStates } from './engine-model/states.mjs'
import { freePort } from './relay/children.mjs'
import { table } from './relay/print.mjs'
import { warmUp } from './vllm/client.mjs'
import { makeRequest, uniform, WORKLOADS } from './vllm/workload.mjs'

const ROOT = join(dirname(fileURLToPath(import.meta.url)), '..')
const SIM = { EngineModel, Rng }
const { values: flags } = parseArgs({
  options: {
    vllm: { type: 'boolean', default: false },
    measured: { type: 'string', default: process.env.SLUICE_MEASURED },
    out: { type: 'string', default: join(ROOT, '.bench', 'engine-model.json') },
  },
})

const H200_PROFILE = 'Qwen3-32B/H200-141G-SXM/tp1'
const STATE_FILES = [
  { title: 'ShareGPT', json: 'sharegpt-h200.jsonl', csv: 'h200-qwen3-32b-sharegpt' },
  {
    title: 'long prompts',
    json: 'chatbot-synthetic-h200.jsonl',
    csv: 'h200-qwen3-32b-chatbot-synthetic',
    calmOnly: true,
  },
]
const LMBENCH_PROFILES = {
  'a100-70b-2x-vllm': 'Llama-3.1-70B/A100-80G-SXM/tp2',
  'h100-70b-2x-vllm': 'Llama-3.1-70B/H100-80G-SXM/tp2',
}
/** From there on the throughput of the H100 runs is that of a single replica, so something else was wrong. */
const BROKEN_H100_QPS = 16
/** Two GPUs of 80 GB less 141 GB of weights hold few tokens; the deployment's own number is not published. */
const KV_TOKENS = [undefined, 42_000]

function stateChecks(folder) {
  return STATE_FILES.flatMap(({ title, json, csv, calmOnly = false }) => {
    const file = textOf(folder, [json, `${csv}.csv`, `${csv}.csv.gz`])
    if (file === undefined) return skipped(json)
    const rows = parseStates(file)
    return [false, true].map((asyncScheduling) => ({
      title: `Qwen3-32B on one H200, ${title}, ${asyncScheduling ? 'with' : 'without'} asynchronous scheduling`,
      rows: checkStates(SIM, rows, { profile: profile(H200_PROFILE), asyncScheduling, calmOnly }),
    }))
  })
}

function shortChecks(folder) {
  const file = textOf(folder, ['lmbench-curves.csv', 'lmbench-curves.csv.gz'])
  if (file === undefined) return skipped('lmbench-curves.csv')
  const curves = parseCsv(file.text)
  return Object.entries(LMBENCH_PROFILES).map(([run, id]) => ({
    title: `${id}, short prompts, ${curves.filter((each) => each.run === run && each.workload === 'short').length} rates`,
    rows: checkShort(SIM, curves, (name) => (name === run ? { profile: profile(id) } : undefined)),
  }))
}

function requestChecks(folder) {
  const name = 'lmbench-sharegpt-requests.csv'
  const file = textOf(folder, [name, `${name}.gz`])
  if (file === undefined) return skipped(name)
  const requests = parseCsv(file.text)
  return Object.entries(LMBENCH_PROFILES).flatMap(([run, id]) =>
    KV_TOKENS.map((kvTokens) => ({
      title: `${id}, ShareGPT request by request, KV of ${kvTokens ?? `${profile(id).kvCapacityTokens} (the profile's)`} tokens`,
      rows: checkRequests(SIM, requests, (name_, qps) => {
        if (name_ !== run || (run.startsWith('h100') && qps >= BROKEN_H100_QPS)) return undefined
        const kv = kvTokens === undefined ? {} : { kvBlocks: Math.floor(kvTokens / 16) }
        return { profile: profile(id), replicas: 2, ...kv }
      }),
    })),
  )
}

function skipped(name) {
  console.log(`SKIPPED: ${name} is not in ${flags.measured}`)
  return []
}

function print({ title, rows }) {
  console.log(`\n${title}`)
  table(
    ['', 'n', 'measured p50', 'simulated p50', 'median error', 'p90 error', 'simulated/measured'],
    rows.map((row) => [
      row.name,
      String(row.count),
      `${row.measuredP50.toFixed(1)} ms`,
      `${row.simulatedP50.toFixed(1)} ms`,
      `${(row.medianErrorRatio * 100).toFixed(1)} %`,
      `${(row.p90ErrorRatio * 100).toFixed(1)} %`,
      row.medianRatio.toFixed(2),
    ]),
  )
}

/** Starts a real vLLM, learns its costs while it idles, and replays what it then did under load. */
async function liveCheck() {
  const servers = await import('../test/vllm/servers.mjs')
  servers.install(servers.requirePython('bench:engine-model -- --vllm'))
  const port = await freePort()
  await servers.start([port])
  try {
    const rng = uniform(98)
    await warmUp(port, () => makeRequest(WORKLOADS.mixed, rng), 8, 60)
    const { idle, profile: fitted } = await live.idleProfile(port, servers.ENGINE_ARGS, fitParameters)
    const { saturatedPerSec, runs } = await live.measureLoads(port)
    const title = `vLLM ${servers.VLLM_VERSION} on this CPU, costs from an idle server, ${saturatedPerSec.toFixed(1)} requests/s when saturated`
    return { title, rows: live.checkLoads(SIM, runs, fitted), idle, fitted, runs }
  } finally {
    await servers.stop([port])
  }
}

function save(checks) {
  mkdirSync(dirname(flags.out), { recursive: true })
  writeFileSync(flags.out, `${JSON.stringify({ checks }, undefined, 2)}\n`)
}

if (flags.vllm) {
  const check = await liveCheck()
  print(check)
  save([check])
} else if (flags.measured === undefined) {
  console.log(
    'SKIPPED: name the folder of measured servers by --measured DIR or SLUICE_MEASURED (see the head of bench/engine-model.mjs)',
  )
} else {
  const checks = [
    ...stateChecks(flags.measured),
    ...shortChecks(flags.measured),
    ...requestChecks(flags.measured),
  ]
  for (const check of checks) print(check)
  save(checks)
}
