/** Whole answers with the headers of uvicorn: lower case, and no keep-alive header. */
import type { IncomingMessage, ServerResponse } from 'node:http'

/** Headers of every answer. */
export function baseHeaders(request: IncomingMessage, requestId: string | undefined): Record<string, string> {
  return {
    date: new Date().toUTCString(),
    server: 'uvicorn',
    vary: 'Origin',
    ...(requestId === undefined ? {} : { 'x-request-id': requestId }),
    ...(request.headers.connection?.toLowerCase() === 'close' ? { connection: 'close' } : {}),
  }
}

export function sendText(
  response: ServerResponse,
  status: number,
  headers: Readonly<Record<string, string>>,
  body: string,
  contentType = 'application/json',
): void {
  const type = body === '' ? {} : { 'content-type': contentType }
  response.writeHead(status, { ...headers, ...type, 'content-length': Buffer.byteLength(body) })
  response.end(response.req.method === 'HEAD' ? undefined : body)
}

/** Reads a whole body as text. Rejects when the client leaves before its end. */
export async function readText(request: IncomingMessage): Promise<string> {
  const pieces: Buffer[] = []
  for await (const piece of request) pieces.push(piece as Buffer)
  return Buffer.concat(pieces).toString('utf8')
}
