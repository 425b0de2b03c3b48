/** A server whose answers a test writes, and which shows what it was asked. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { listenOnLoopback } from '../support/loopback.ts'

const ANSWER =
  'data: {"choices":[{"delta":{"content":"a"}}]}\n\ndata: {"choices":[],"usage":{"completion_tokens":1}}\n\ndata: [DONE]\n\n'
/** A whole stream of one token. */
export const answer = (res: ServerResponse) => {
  res.writeHead(200, { 'content-type': 'text/event-stream' }).end(ANSWER)
}

export interface Script {
  readonly url: string
  readonly sockets: ReadonlySet<Socket>
  readonly requests: readonly { readonly headers: IncomingMessage['headers']; readonly body: string }[]
}

const closers: (() => Promise<void>)[] = []
/** Ends every server of this test file. */
export async function closeServers(): Promise<void> {
  for (const close of closers.splice(0)) await close()
}

/** Starts one; `GET /v1/models` names the model `m`, everything else is the test's. */
export async function scripted(onRequest: (res: ServerResponse, seen: number) => void): Promise<Script> {
  const requests: Script['requests'][number][] = []
  const sockets = new Set<Socket>()
  const server = createServer((req, res) => {
    if (req.method === 'GET') {
      res.end('{"data":[{"id":"m"}]}')
      return
    }
    let body = ''
    req.on('data', (bytes: Buffer) => {
      body += bytes.toString()
    })
    req.on('end', () => {
      requests.push({ headers: req.headers, body })
      onRequest(res, requests.length)
    })
  })
  server.on('connection', (socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
  })
  const port = await listenOnLoopback(server)
  closers.push(
    () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  )
  return { url: `http://127.0.0.1:${port}`, sockets, requests }
}
