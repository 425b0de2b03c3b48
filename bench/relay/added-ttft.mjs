/**
 * Added TTFT: the same requests at a fixed rate against a bare emulator and through Sluice, in turns of a few seconds
 * each, so that whatever else the machine does hits both.
 */
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { sharedNowMs } from './frames.mjs'
import { messageReader } from './http1.mjs'
import { median, percentiles } from './stats.mjs'

const CONTENT = /"(content|text)":"[^"]/

/** One open-loop slice. Resolves to the TTFT of each answer in ms, from the instant at which it was due. */
export async function ttftSlice({ port, ratePerSec, seconds, promptBytes, maxTokens, model, sockets }) {
  const body = JSON.stringify({
    model,
    messages: [{ role: 'user', content: 'relay '.repeat(Math.ceil(promptBytes / 6)).slice(0, promptBytes) }],
    max_tokens: maxTokens,
    stream: true,
    stream_options: { include_usage: true },
  })
  const request = Buffer.from(
    `POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  )
  const ttftMs = []
  const failures = {}
  const open = []
  const startAtMs = sharedNowMs()
  for (let index = 0; index < ratePerSec * seconds; index++) {
    const dueAtMs = startAtMs + (index * 1000) / ratePerSec
    while (sharedNowMs() < dueAtMs) await sleep(1)
    const sentAtMs = sharedNowMs()
    open.push(
      sockets
        .exchange(port, request)
        .then((firstAtMs) => ttftMs.push(firstAtMs - sentAtMs))
        .catch((error) => {
          failures[error.message] = (failures[error.message] ?? 0) + 1
        }),
    )
  }
  await Promise.all(open)
  return { ttftMs, failures }
}

/** Kept-alive raw sockets by port; one request a socket at a time. */
export function socketStore() {
  const idle = new Map()
  return {
    exchange(port, request) {
      const list = idle.get(port) ?? []
      let entry = list.pop()
      // Servers close sockets that have idled during the other's slice.
      while (entry?.closed) entry = list.pop()
      entry ??= newEntry(port)
      return new Promise((resolve, reject) => {
        entry.begin(request, resolve, reject, () => {
          list.push(entry)
          idle.set(port, list)
        })
      })
    },
    close() {
      for (const list of idle.values()) for (const entry of list) entry.close()
      idle.clear()
    },
  }
}

function newEntry(port) {
  const socket = connect(port, '127.0.0.1')
  socket.setNoDelay(true)
  let story
  const read = messageReader({
    onHead(line) {
      story.status = line.split(' ')[1]
    },
    onBody(bytes) {
      if (story.firstAtMs === undefined && CONTENT.test(bytes.latin1Slice())) story.firstAtMs = sharedNowMs()
    },
    onEnd() {
      const { firstAtMs, status, resolve, reject, giveBack } = story
      story = undefined
      giveBack()
      if (firstAtMs === undefined) reject(new Error(`no token, status ${status}`))
      else resolve(firstAtMs)
    },
  })
  socket.on('data', read)
  socket.on('error', () => undefined)
  socket.on('close', () => story?.reject(new Error('closed')))
  return {
    begin(request, resolve, reject, giveBack) {
      story = { resolve, reject, giveBack, firstAtMs: undefined, status: '' }
      socket.write(request)
    },
    get closed() {
      return socket.destroyed || socket.readableEnded
    },
    close: () => socket.destroy(),
  }
}

/** Runs the slices in turns and sums them up: per slice pair the difference, over pairs the median. */
export async function measureAddedTtft({ barePort, sluicePort, slices, ...load }) {
  const sockets = socketStore()
  const rows = []
  try {
    for (const port of [barePort, sluicePort]) await ttftSlice({ ...load, port, seconds: 2, sockets })
    for (let slice = 0; slice < slices; slice++) {
      const order = slice % 2 === 0 ? [barePort, sluicePort] : [sluicePort, barePort]
      const row = {}
      for (const port of order)
        row[port === barePort ? 'bare' : 'sluice'] = await ttftSlice({ ...load, port, sockets })
      rows.push(row)
    }
  } finally {
    sockets.close()
  }
  const of = (name) => percentiles(rows.flatMap((row) => row[name].ttftMs))
  const difference = (key) =>
    median(rows.map((row) => percentiles(row.sluice.ttftMs)[key] - percentiles(row.bare.ttftMs)[key]))
  return {
    bareTtftMs: of('bare'),
    sluiceTtftMs: of('sluice'),
    addedP50Ms: difference('p50'),
    addedP99Ms: difference('p99'),
    failures: Object.assign({}, ...rows.flatMap((row) => [row.bare.failures, row.sluice.failures])),
  }
}
