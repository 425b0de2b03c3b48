/**
 * Added TTFT: the same requests at a fixed rate against a bare emulator and through each peer, in turns of a few seconds
 * each, so that whatever else the machine does hits all.
 */
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { sharedNowMs } from './frames.mjs'
import { messageReader } from './http1.mjs'
import { median, percentiles } from './stats.mjs'

/** Long enough for Node to compile what a request runs through. */
const WARM_UP_SECONDS = 15
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

/**
 * Runs the slices in turns and sums them up: by round the difference to the bare engine, over rounds the median.
 * `ports` names the addresses; `bare` must be one of them.
 */
export async function measureAddedTtft({ ports, slices, ...load }) {
  const sockets = socketStore()
  const names = Object.keys(ports)
  const rounds = []
  try {
    for (const name of names)
      await ttftSlice({ ...load, port: ports[name], seconds: WARM_UP_SECONDS, sockets })
    for (let slice = 0; slice < slices; slice++) {
      const round = {}
      for (let turn = 0; turn < names.length; turn++) {
        const name = names[(slice + turn) % names.length]
        round[name] = await ttftSlice({ ...load, port: ports[name], sockets })
      }
      rounds.push(round)
    }
  } finally {
    sockets.close()
  }
  return names.map((name) => {
    const added = (key) =>
      median(
        rounds.map((round) => percentiles(round[name].ttftMs)[key] - percentiles(round.bare.ttftMs)[key]),
      )
    return {
      name,
      ttftMs: percentiles(rounds.flatMap((round) => round[name].ttftMs)),
      addedP50Ms: added('p50'),
      addedP99Ms: added('p99'),
      failures: Object.assign({}, ...rounds.map((round) => round[name].failures)),
    }
  })
}
