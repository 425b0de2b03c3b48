/**
 * Keeps a number of streams open through an address and compares every byte with what the upstream must have sent.
 * Usage: node loader.mjs JSON with { port, streams, rounds, tokens, promptBytes, rampMs, headers }. Prints one JSON line.
 */
import { connect } from 'node:net'
import { bodyChecker, sharedNowMs } from './frames.mjs'
import { messageReader } from './http1.mjs'
import { percentiles } from './stats.mjs'

const { port, streams, rounds, tokens, promptBytes, rampMs, headers = {} } = JSON.parse(process.argv[2])
const body = JSON.stringify({
  model: 'bench',
  messages: [{ role: 'user', content: 'relay '.repeat(Math.ceil(promptBytes / 6)).slice(0, promptBytes) }],
  max_tokens: tokens,
  stream: true,
  stream_options: { include_usage: true },
})
const head = Object.entries({
  host: `127.0.0.1:${port}`,
  'content-type': 'application/json',
  'content-length': Buffer.byteLength(body),
  ...headers,
})
const REQUEST = Buffer.from(
  `POST /v1/chat/completions HTTP/1.1\r\n${head.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n${body}`,
)
const promptTokens = Math.round(promptBytes / 4)

const delaysMs = []
const addedTtftMs = []
const errors = {}
let chunks = 0

function oneStream(index) {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.setNoDelay(true)
    let left = rounds
    let checker
    let sentAtMs = 0
    let status = ''
    const fail = (message) => {
      errors[message] = (errors[message] ?? 0) + 1
      socket.destroy()
      resolve()
    }
    const send = () => {
      let first = true
      checker = bodyChecker(promptTokens, tokens, (delayMs, nowMs) => {
        chunks++
        // The upstream answers a request's first token at once, so all of its TTFT is the way there and back.
        if (first) addedTtftMs.push(nowMs - sentAtMs)
        else delaysMs.push(delayMs)
        first = false
      })
      sentAtMs = sharedNowMs()
      socket.write(REQUEST)
    }
    const read = messageReader({
      onHead(line) {
        status = line.split(' ')[1]
      },
      onBody(bytes) {
        if (status === '200') checker.take(bytes)
        else throw new Error(`status ${status}: ${bytes.toString().slice(0, 200)}`)
      },
      onEnd() {
        if (!checker.complete) throw new Error(`cut short, status ${status}`)
        // The role frame, usage and end marker are frames too.
        chunks += 3
        if (--left > 0) return send()
        socket.end()
        resolve()
      },
    })
    socket.on('data', (bytes) => {
      try {
        read(bytes)
      } catch (error) {
        fail(error.message)
      }
    })
    socket.on('error', (error) => fail(error.message))
    socket.on('close', () => {
      if (left > 0) fail('closed')
    })
    setTimeout(send, (rampMs * index) / streams)
  })
}

const startAtMs = sharedNowMs()
await Promise.all(Array.from({ length: streams }, (_, index) => oneStream(index)))
const seconds = (sharedNowMs() - startAtMs) / 1000
console.log(
  JSON.stringify({
    chunks,
    seconds,
    requests: streams * rounds,
    errors,
    delayMs: percentiles(delaysMs),
    ttftMs: percentiles(addedTtftMs),
  }),
)
