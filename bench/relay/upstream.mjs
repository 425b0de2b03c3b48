/**
 * Imitates vLLM servers cheaply, one a port: a chat completion streams `max_tokens` frames at a set pace on a raw
 * socket. Usage: node upstream.mjs INTERVAL_MS PORT_COUNT. Prints the ports as JSON.
 */
import { createServer } from 'node:net'
import { DONE_FRAME, ROLE_FRAME, sharedNowMs, tokenFrame, usageFrame } from './frames.mjs'
import { chunkOf, messageReader } from './http1.mjs'

const intervalMs = Number(process.argv[2])
const portCount = Number(process.argv[3])
const STREAM_HEAD = Buffer.from(
  'HTTP/1.1 200 OK\r\nserver: bench\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n',
)
const LAST_CHUNK = Buffer.from('0\r\n\r\n')
const ROLE_CHUNK = chunkOf(ROLE_FRAME)
const MODELS = JSON.stringify({
  object: 'list',
  data: [{ id: 'bench', object: 'model', created: 1, owned_by: 'bench', max_model_len: 32_768 }],
})

/** Streams under way. One timer serves all: a timer each would cost more than the frames. */
const streams = new Set()
const timer = setInterval(() => {
  const nowMs = sharedNowMs()
  for (const stream of streams) if (stream.dueAtMs <= nowMs) step(stream)
}, 1)
timer.unref()

function step(stream) {
  if (stream.socket.destroyed) return streams.delete(stream)
  const first = stream.sent === 0
  const token = chunkOf(tokenFrame(sharedNowMs()))
  stream.sent++
  stream.socket.write(first ? Buffer.concat([ROLE_CHUNK, token]) : token)
  if (stream.sent === stream.tokens) {
    streams.delete(stream)
    stream.socket.write(
      Buffer.concat([
        chunkOf(usageFrame(stream.promptTokens, stream.tokens)),
        chunkOf(DONE_FRAME),
        LAST_CHUNK,
      ]),
    )
  } else {
    // Spread by a fifth either way, so that streams don't march in step.
    stream.dueAtMs += intervalMs * (0.8 + 0.4 * Math.random())
  }
}

const metricsPage = () =>
  [
    ['vllm:num_requests_running', streams.size],
    ['vllm:num_requests_waiting', 0],
    ['vllm:kv_cache_usage_perc', 0.1],
    ['vllm:num_preemptions_total', 0],
  ]
    .map(
      ([name, value]) =>
        `# TYPE ${name} ${name.endsWith('_total') ? 'counter' : 'gauge'}\n${name}{engine="0",model_name="bench"} ${value}.0\n`,
    )
    .join('')

function answerWhole(socket, type, body) {
  socket.write(
    `HTTP/1.1 200 OK\r\nserver: bench\r\ncontent-type: ${type}\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  )
}

function answer(socket, startLine, body) {
  if (startLine.startsWith('POST')) {
    const request = JSON.parse(body)
    const tokens = request.max_tokens ?? 1
    const promptTokens = Math.round(String(request.messages?.[0]?.content ?? request.prompt ?? '').length / 4)
    if (request.stream !== true) {
      const usage = {
        prompt_tokens: promptTokens,
        completion_tokens: tokens,
        total_tokens: promptTokens + tokens,
      }
      const choices = [
        { index: 0, message: { role: 'assistant', content: 'x' }, text: 'x', finish_reason: 'length' },
      ]
      return answerWhole(
        socket,
        'application/json',
        JSON.stringify({
          id: 'bench',
          object: 'chat.completion',
          created: 1,
          model: 'bench',
          choices,
          usage,
        }),
      )
    }
    socket.write(STREAM_HEAD)
    const stream = { socket, tokens, promptTokens, sent: 0, dueAtMs: sharedNowMs() }
    streams.add(stream)
    return step(stream)
  }
  if (startLine.includes(' /metrics'))
    return answerWhole(socket, 'text/plain; version=1.0.0; charset=utf-8', metricsPage())
  if (startLine.includes(' /v1/models')) return answerWhole(socket, 'application/json', MODELS)
  answerWhole(socket, 'application/json', startLine.includes(' /version') ? '{"version":"0.32.0"}' : '')
}

function onConnection(socket) {
  socket.setNoDelay(true)
  socket.on('error', () => socket.destroy())
  let startLine = ''
  let parts = []
  const read = messageReader({
    onHead(line) {
      startLine = line
      parts = []
    },
    onBody: (bytes) => parts.push(bytes),
    onEnd: () => answer(socket, startLine, Buffer.concat(parts).toString()),
  })
  socket.on('data', read)
}

const servers = Array.from({ length: portCount }, () => createServer(onConnection))
await Promise.all(
  servers.map((server) => new Promise((resolve) => server.listen(0, '127.0.0.1', 4096, resolve))),
)
console.log(JSON.stringify({ ports: servers.map((server) => server.address().port) }))
process.on('disconnect', () => process.exit(0))
