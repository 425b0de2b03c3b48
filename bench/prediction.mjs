/**
 * How well TTFT and TPOT are predicted: measured requests of a real vLLM are replayed in order, each predicted before
 * it is learnt, beside a constant, a tokens/throughput rule and a least-squares line fitted in hindsight.
 *
 *   npm run bench:prediction -- --data DIR       or SLUICE_TRACES=DIR
 *
 * DIR (or DIR/measured) holds the traces that llm-d-latency-predictor publishes under benchmarks/traces (Apache-2.0):
 * Qwen3-32B, vLLM, two replicas of one H200, 1 to 16 requests/s; as sharegpt-h200.jsonl and chatbot-synthetic-h200.jsonl,
 * or as CSV with the columns kv_used, prompt_tokens, waiting, running, prefix_hit, prefill_tokens_in_flight, ttft_ms,
 * tpot_ms. Prints tables and JSON; ends with 1 when a target is missed. Takes seconds.
 */
import { existsSync, readdirSync } from 'node:fs'
import { basename, join } from 'node:path'
import { parseArgs } from 'node:util'
import { constant, hindsightLine, sluice, throughputRule } from './prediction/predictors.mjs'
import { replay } from './prediction/replay.mjs'
import { readRows } from './prediction/rows.mjs'
import { accuracyTable, missedTargets, progressTable, score, TARGETS } from './prediction/score.mjs'

const PROFILE = 'Qwen3-32B/H200-141G-SXM/tp1'
const TRACE = /h200.*\.(csv|csv\.gz|jsonl)$/

const { values: options } = parseArgs({
  options: { data: { type: 'string', default: process.env.SLUICE_TRACES ?? '' } },
})

function traceFiles(folder) {
  return [folder, join(folder, 'measured')]
    .filter((path) => existsSync(path))
    .flatMap((path) => readdirSync(path).map((name) => join(path, name)))
    .filter((path) => TRACE.test(path))
    .sort()
}

const files = options.data === '' ? [] : traceFiles(options.data)
if (files.length === 0) {
  console.error(
    `SKIPPED: no measured requests in ${options.data === '' ? 'the folder, since none was named' : options.data}. Get\n` +
      'benchmarks/traces of github.com/llm-d/llm-d-latency-predictor and name its folder with --data or SLUICE_TRACES.',
  )
  process.exit(2)
}

const results = []
for (const file of files) {
  const rows = readRows(file)
  const predictors = () => [
    sluice('sluice, nothing known'),
    sluice('sluice, with a profile', PROFILE),
    constant(),
    throughputRule(),
    hindsightLine(rows),
  ]
  for (const asKnownAtDispatch of [false, true]) {
    for (const predictor of predictors()) {
      const predictions = replay(rows, predictor, asKnownAtDispatch)
      results.push(
        score(predictions, { trace: basename(file), predictor: predictor.name, asKnownAtDispatch }),
      )
    }
  }
}

const inOrder = results.filter(({ asKnownAtDispatch }) => !asKnownAtDispatch)
console.log(`\nAfter ${TARGETS.afterSamples} samples, each request predicted right before it is learnt:`)
console.log(accuracyTable(inOrder))
console.log('By samples seen, nothing known at first:')
console.log(progressTable(inOrder.filter(({ predictor }) => predictor === 'sluice, nothing known')))
console.log(
  'The same rows, each predicted by what was known when it was sent: as many first tokens earlier as stood before it in\n' +
    "the engine's queue (estimated, as the rows bear no time). Behind Sluice that queue stays at about one chunk:",
)
console.log(accuracyTable(results.filter(({ asKnownAtDispatch }) => asKnownAtDispatch)))
const missed = missedTargets(inOrder)
console.log(missed.length === 0 ? 'All targets met.' : `MISSED: ${missed.join('; ')}`)
console.log(JSON.stringify(results))
process.exitCode = missed.length === 0 ? 0 : 1
