/**
 * The least proxy of Sluice's shape: Hono routes, undici dispatch, raw answer; it decides, counts and reads nothing.
 * Usage: node hono-undici-server.mjs PORT UPSTREAM_PORT...
 */
import { serve } from '@hono/node-server'
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response'
import { Hono } from 'hono'
import { Pool } from 'undici'

const [port, ...upstreamPorts] = process.argv.slice(2).map(Number)
const replicas = upstreamPorts.map((upstreamPort) => ({
  pool: new Pool(`http://127.0.0.1:${upstreamPort}`, {
    connections: null,
    pipelining: 1,
    headersTimeout: 0,
    bodyTimeout: 0,
  }),
  open: 0,
}))
const NOT_FORWARDED = new Set([
  'connection',
  'keep-alive',
  'transfer-encoding',
  'host',
  'content-length',
  'upgrade',
  'te',
  'expect',
])

function forwarded(headers) {
  const kept = {}
  for (const name in headers) if (!NOT_FORWARDED.has(name)) kept[name] = headers[name]
  return kept
}

function relay(outgoing, replica) {
  let controller
  const release = () => {
    replica.open--
  }
  outgoing.on('close', () => {
    if (!outgoing.writableFinished) controller?.abort(new Error('client left'))
  })
  outgoing.on('drain', () => controller.resume())
  return {
    onRequestStart(started) {
      controller = started
    },
    onResponseStart(_controller, status, headers) {
      outgoing.writeHead(status, forwarded(headers))
    },
    onResponseData(_controller, bytes) {
      if (!outgoing.write(bytes)) controller.pause()
    },
    onResponseEnd() {
      release()
      outgoing.end()
    },
    onResponseError(_controller, error) {
      release()
      if (outgoing.headersSent) outgoing.destroy(error)
      else outgoing.writeHead(502).end()
    },
  }
}

const app = new Hono()
app.all('*', (context) => {
  const { incoming, outgoing } = context.env
  const parts = []
  incoming.on('data', (bytes) => parts.push(bytes))
  incoming.on('end', () => {
    const replica = replicas.reduce((least, each) => (each.open < least.open ? each : least))
    replica.open++
    const body = parts.length === 0 ? null : Buffer.concat(parts)
    const request = {
      path: incoming.url,
      method: incoming.method,
      headers: forwarded(incoming.headers),
      body,
    }
    replica.pool.dispatch(request, relay(outgoing, replica))
  })
  return RESPONSE_ALREADY_SENT
})
serve({ fetch: app.fetch, port, hostname: '127.0.0.1' })
process.on('disconnect', () => process.exit(0))
