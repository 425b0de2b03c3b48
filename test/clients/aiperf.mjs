/** NVIDIA's aiperf as a judge: installs it, runs it, and reads what it measured of each request. */
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { requirePython } from '../vllm/servers.mjs'

const HERE = dirname(fileURLToPath(import.meta.url))
const ROOT = join(HERE, '..', '..')
const VENV = join(ROOT, '.venv-aiperf')
const PYTHON = join(VENV, 'bin', 'python')
const VERSION = '0.13.0'
/** About 300 tokens of the simulated engine: the tokenizer knows no English and cuts it small. */
const PROMPT_TOKENS = 800

export const name = 'aiperf'
/** The process whose clock stamps the chunks. */
export const clockProcess = 'worker_process'

/** Installs it once, and makes the tokenizer unless vLLM's installation has. */
export function install() {
  if (!existsSync(join(VENV, 'bin', 'aiperf'))) installProgram()
  const model = join(ROOT, '.real-vllm', 'model')
  if (existsSync(join(model, 'config.json'))) return
  execFileSync(PYTHON, [join(HERE, '..', 'vllm', 'tiny_model.py'), model], { stdio: 'inherit' })
}

function installProgram() {
  console.error(`installing aiperf ${VERSION} into .venv-aiperf (a minute, 840 MB) ...`)
  const quiet = { stdio: ['ignore', 'ignore', 'inherit'] }
  execFileSync(requirePython('test:clients'), ['-m', 'venv', VENV], quiet)
  // pip takes more than ten minutes to resolve what aiperf needs, uv a few seconds.
  execFileSync(PYTHON, ['-m', 'pip', 'install', '--quiet', '--no-cache-dir', 'uv'], quiet)
  const uv = [`aiperf==${VERSION}`, '--quiet', '--no-cache', '--python', PYTHON]
  execFileSync(join(VENV, 'bin', 'uv'), ['pip', 'install', ...uv], quiet)
}

/** The command line and environment of one run; `folder` takes its result. */
export function command({ url, model, tokenizer, targets, ratePerSec, requests, shape, seed, folder }) {
  const deviation = (tokens) => Math.round((tokens * shape.spreadRatio) / 2)
  const args = {
    url,
    model,
    tokenizer,
    'endpoint-type': 'chat',
    'synthetic-input-tokens-mean': PROMPT_TOKENS,
    'synthetic-input-tokens-stddev': deviation(PROMPT_TOKENS),
    'output-tokens-mean': shape.answerTokens,
    'output-tokens-stddev': deviation(shape.answerTokens),
    'extra-inputs': 'ignore_eos:true',
    'request-count': requests,
    'request-rate': ratePerSec,
    'random-seed': seed,
    'workers-max': 1,
    'record-processors': 1,
    'ui-type': 'none',
    'output-artifact-dir': folder,
    goodput: `time_to_first_token:${targets.ttftMs} inter_token_latency:${targets.tpotMs}`,
  }
  return {
    program: join(VENV, 'bin', 'aiperf'),
    args: [
      ...['profile', '--streaming', '--use-server-token-count', '--no-server-metrics', '--no-gpu-telemetry'],
      ...Object.entries(args).flatMap(([key, value]) => [`--${key}`, String(value)]),
    ],
    // Offline mode would make it take the tokenizer's folder for the name of a hub.
    env: { HF_HUB_OFFLINE: undefined, OMP_NUM_THREADS: '1' },
  }
}

/**
 * The records of a finished run and the client's own count of good ones. Its rules: TTFT to the first chunk with text;
 * its "inter token latency" is our TPOT, (last chunk with text - first) / (tokens by usage - 1); an answer of a single
 * token has none and is never good.
 */
export function read(folder, targets) {
  const lines = readFileSync(join(folder, 'profile_export.jsonl'), 'utf8').trim().split('\n')
  const records = lines.map((text) => {
    const { metadata, metrics, error } = JSON.parse(text)
    const id = metadata.x_request_id
    const completed = !error && !metadata.was_cancelled
    if (!completed) return { id, completed, good: false }
    const [ttftMs, tpotMs] = [metrics.time_to_first_token?.value, metrics.inter_token_latency?.value]
    return { id, completed, good: ttftMs <= targets.ttftMs && tpotMs <= targets.tpotMs, ttftMs, tpotMs }
  })
  const summary = JSON.parse(readFileSync(join(folder, 'profile_export_aiperf.json'), 'utf8'))
  return { records, ownGood: summary.good_request_count?.avg ?? 0 }
}
