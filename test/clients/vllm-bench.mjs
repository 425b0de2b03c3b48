/** `vllm bench serve --goodput` as a judge: installs it, runs it, and reads what it measured of each request. */
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { install as installVllm, requirePython, VENV_PYTHON } from '../vllm/servers.mjs'

const PREFIX = 'agree-'
/** About 300 tokens of the simulated engine, which counts four bytes each. */
const PROMPT_TOKENS = 200

export const name = 'vllm bench serve'
/** The process whose clock stamps the chunks. */
export const clockProcess = 'MainProcess'

/** The same environment and tokenizer as `npm run test:vllm`. */
export function install() {
  installVllm(requirePython('test:clients'))
}

/** The command line and environment of one run; `folder` takes its result. */
export function command({ url, model, tokenizer, targets, ratePerSec, requests, shape, seed, folder }) {
  const args = {
    'base-url': url,
    backend: 'openai-chat',
    endpoint: '/v1/chat/completions',
    model,
    tokenizer,
    'dataset-name': 'random',
    'random-input-len': PROMPT_TOKENS,
    'random-output-len': shape.answerTokens,
    'random-range-ratio': shape.spreadRatio,
    'num-prompts': requests,
    'request-rate': ratePerSec,
    'request-id-prefix': PREFIX,
    seed,
    'result-dir': folder,
    'result-filename': 'vllm.json',
  }
  return {
    program: join(dirname(VENV_PYTHON), 'vllm'),
    args: [
      ...['bench', 'serve', '--ignore-eos', '--save-result', '--save-detailed', '--disable-tqdm'],
      ...Object.entries(args).flatMap(([key, value]) => [`--${key}`, String(value)]),
      ...['--goodput', `ttft:${targets.ttftMs}`, `tpot:${targets.tpotMs}`],
    ],
    env: { HF_HUB_OFFLINE: '1', VLLM_NO_USAGE_STATS: '1', DO_NOT_TRACK: '1', OMP_NUM_THREADS: '1' },
  }
}

/**
 * The records of a finished run and the client's own count of good ones. Its rules: TTFT to the first chunk that has a
 * choice (the role's, which Sluice holds until the first token); TPOT = (last such chunk - first) / (tokens by usage
 * - 1), and 0 for a single token.
 */
export function read(folder, targets) {
  const result = JSON.parse(readFileSync(join(folder, 'vllm.json'), 'utf8'))
  const records = result.ttfts.map((ttft, place) => {
    const completed = result.errors[place] === '' && result.output_lens[place] > 0
    if (!completed) return { id: `${PREFIX}${place}`, completed, good: false }
    const ttftMs = ttft * 1000
    const steps = result.output_lens[place] - 1
    const tpotMs = steps < 1 ? 0 : (result.latencies[place] * 1000 - ttftMs) / steps
    const good = ttftMs <= targets.ttftMs && tpotMs <= targets.tpotMs
    return { id: `${PREFIX}${place}`, completed, good, ttftMs, tpotMs }
  })
  return { records, ownGood: Math.round(result.request_goodput * result.duration) }
}
