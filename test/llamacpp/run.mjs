/**
 * Sluice in front of two real llama.cpp servers, one with its metrics and one without.
 *
 *   npm run test:llamacpp
 *
 * Takes about a minute, and as long again for the installation at first use (200 MB, to .real-llamacpp). Prints a line a
 * case and the counts; exit code 0 when all passed. Skips loudly without Python.
 */
import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import OpenAI from 'openai'
import { MAIN } from '../../bench/processes.mjs'
import { eventually } from '../../bench/waiting.mjs'
import { findPython } from '../vllm/servers.mjs'

const HERE = dirname(fileURLToPath(import.meta.url))
const ROOT = join(HERE, '..', '..')
const STATE = join(ROOT, '.real-llamacpp')
const PYTHON = join(STATE, 'venv', 'bin', 'python')
const MODEL = join(STATE, 'tiny.gguf')
const PACKAGES = ['xllamacpp==2026.10.11549', 'gguf==0.19.0']
const SLOTS = 2
const messages = [{ role: 'user', content: 'Tell me of the river.' }]

const children = []

function install() {
  const python = findPython()
  if (python === undefined) {
    console.error(
      'SKIPPED: test:llamacpp needs Python >= 3.11 with venv, and found none; set PYTHON or install it.',
    )
    process.exit(0)
  }
  mkdirSync(STATE, { recursive: true })
  if (!existsSync(PYTHON)) execFileSync(python, ['-m', 'venv', join(STATE, 'venv')], { stdio: 'inherit' })
  execFileSync(PYTHON, ['-m', 'pip', 'install', '-q', ...PACKAGES], { stdio: 'inherit' })
  if (!existsSync(MODEL)) execFileSync(PYTHON, [join(HERE, 'tiny_model.py'), MODEL], { stdio: 'inherit' })
}

/** Starts a child and waits until what it prints matches. */
async function startChild(command, args, ready) {
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'] })
  children.push(child)
  let text = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (bytes) => {
      // Enough for what is waited for, and for the end of a failure.
      text = (text + bytes).slice(-4000)
    })
  const match = await eventually(`${command} ${args.join(' ')} to be ready`, 60_000, () => {
    if (child.exitCode !== null) throw new Error(`${command} ended: ${text}`)
    return ready.exec(text)
  })
  return { child, match }
}

const startEngine = (port, metrics) =>
  startChild(PYTHON, [join(HERE, 'server.py'), MODEL, port, SLOTS, metrics ? 1 : 0].map(String), /^serving /m)

async function startSluice(enginePorts) {
  const file = join(STATE, 'sluice.yaml')
  const replicas = enginePorts.map((port) => `http://127.0.0.1:${port}`).join(', ')
  writeFileSync(
    file,
    `listen: 127.0.0.1:0
admin: { listen: "127.0.0.1:0" }
mode: enforce
auth: none
default_class: agent
models: [{ name: tiny, engine: llamacpp, replicas: [${replicas}] }]
`,
  )
  const args = [MAIN, 'serve', '-c', file, '--log-level', 'silent']
  const { match } = await startChild(process.execPath, args, /traffic +(\S+)\n +admin +(\S+)\n/)
  return { base: match[1], admin: match[2] }
}

function cases({ base, admin, enginePorts, engines }) {
  const client = new OpenAI({ baseURL: `${base}/v1`, apiKey: 'none', maxRetries: 0, timeout: 60_000 })
  const json = async (url) => (await fetch(url)).json()
  const replicas = async () => (await json(`${admin}/replicas`)).replicas
  const busy = async (port) =>
    (await json(`http://127.0.0.1:${port}/slots`)).filter((slot) => slot.is_processing).length
  const busySlots = async () =>
    (await Promise.all(enginePorts.map(busy))).reduce((sum, count) => sum + count, 0)
  const chat = (more) => client.chat.completions.create({ model: 'tiny', messages, max_tokens: 24, ...more })
  const post = (path, body) =>
    fetch(`${base}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'tiny', ...body }),
    })

  return {
    'limits are read from both, gauges from metrics and from slots': async () => {
      const seen = await eventually('both replicas to be seen', 15_000, async () => {
        const all = await replicas()
        return all.every(({ gauges, limits }) => gauges && (limits.max_num_seqs ?? limits.maxNumSeqs)) && all
      })
      for (const { limits } of seen) assert.equal(limits.max_num_seqs ?? limits.maxNumSeqs, SLOTS)
    },
    'chat streams, with its usage counted': async () => {
      let [text, usage] = ['', undefined]
      for await (const chunk of await chat({ stream: true, stream_options: { include_usage: true } })) {
        text += chunk.choices[0]?.delta.content ?? ''
        usage = chunk.usage ?? usage
      }
      assert.ok(text.length > 0 && usage.completion_tokens > 0, `${text.length} ${JSON.stringify(usage)}`)
    },
    'completions, messages and responses answer, whole and streamed': async () => {
      const bodies = {
        '/v1/completions': { prompt: 'Once', max_tokens: 8 },
        '/v1/messages': { messages, max_tokens: 8 },
        '/v1/responses': { input: 'Once', max_output_tokens: 8 },
      }
      for (const [path, body] of Object.entries(bodies)) {
        for (const stream of [false, true]) {
          const answer = await post(path, { ...body, stream })
          const text = await answer.text()
          assert.equal(answer.status, 200, `${path} ${stream}: ${text.slice(0, 200)}`)
          assert.ok(text.length > 40, path)
        }
      }
    },
    'tokenize takes llama.cpp’s own name for the text': async () => {
      const { tokens } = await (await post('/tokenize', { content: 'river' })).json()
      assert.ok(tokens.length > 0)
    },
    'a prompt that is too long is the client’s fault, in the engine’s words': async () => {
      const answer = await post('/v1/completions', { prompt: 'x'.repeat(9000), max_tokens: 1 })
      assert.equal(answer.status, 400)
      assert.equal((await answer.json()).error.type, 'exceed_context_size_error')
    },
    'twelve at once are held here and not in the engines, and all are served': async () => {
      let [mostDeferred, mostBusy] = [0, 0]
      const watch = setInterval(async () => {
        const page = await (await fetch(`http://127.0.0.1:${enginePorts[0]}/metrics`)).text()
        const figure = (name) =>
          Number(new RegExp(`^llamacpp:requests_${name} (\\S+)`, 'm').exec(page)?.[1] ?? 0)
        mostDeferred = Math.max(mostDeferred, figure('deferred'))
        mostBusy = Math.max(mostBusy, figure('processing'))
      }, 20)
      const all = await Promise.allSettled(Array.from({ length: 12 }, () => chat({ max_tokens: 100 })))
      clearInterval(watch)
      const failed = all.filter(({ status }) => status === 'rejected').map(({ reason }) => `${reason}`)
      assert.deepEqual(failed, [])
      assert.ok(mostBusy > 0 && mostBusy <= SLOTS, `${mostBusy} were at work there at most`)
      assert.ok(mostDeferred <= 1, `${mostDeferred} waited in the engine`)
      return `at most ${mostBusy} at work in an engine, and ${mostDeferred} waiting there`
    },
    'a client that leaves frees its slot': async () => {
      const stream = await chat({ stream: true, max_tokens: 3000 })
      let frames = 0
      for await (const _ of stream) if (++frames === 3) break
      await eventually('no slot to be busy', 5000, async () => (await busySlots()) === 0)
    },
    'a server that dies costs no new request, and takes traffic again when it is back': async () => {
      engines[0].child.kill('SIGKILL')
      await once(engines[0].child, 'close')
      for (let index = 0; index < 6; index += 1) await chat()
      await eventually('it to be down', 15_000, async () =>
        (await replicas()).some(({ state }) => state === 'down'),
      )
      engines[0] = await startEngine(enginePorts[0], true)
      await eventually('it to be back', 30_000, async () =>
        (await replicas()).every(({ state }) => state === 'live' || state === 'ramping'),
      )
    },
  }
}

async function main() {
  install()
  const enginePorts = [18_181, 18_182]
  const engines = await Promise.all(enginePorts.map((port, at) => startEngine(port, at === 0)))
  const seat = { ...(await startSluice(enginePorts)), enginePorts, engines }
  let failed = 0
  const all = Object.entries(cases(seat))
  for (const [name, run] of all) {
    try {
      const detail = await run()
      console.log(`ok   ${name}${detail ? `: ${detail}` : ''}`)
    } catch (error) {
      failed += 1
      console.log(
        `FAIL ${name}: ${String(error.stack ?? error)
          .split('\n')
          .slice(0, 4)
          .join(' | ')}`,
      )
    }
  }
  console.log(`\n${all.length - failed} passed, ${failed} failed`)
  return failed
}

try {
  process.exitCode = (await main()) === 0 ? 0 : 1
} finally {
  for (const child of children) child.kill('SIGKILL')
}
