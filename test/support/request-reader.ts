/** Reads HTTP/1.1 requests off a socket's bytes, one after another; a body of any size is joined once. */
import type { ReceivedRequest } from './scripted-exchange.ts'

interface Head {
  readonly request: Omit<ReceivedRequest, 'body'>
  readonly bodyAt: number
  readonly endAt: number
}

export class RequestReader {
  #pieces: Buffer[] = []
  #bytes = 0
  #head: Head | undefined

  push(bytes: Buffer): void {
    this.#pieces.push(bytes)
    this.#bytes += bytes.length
  }

  /** The next whole request; undefined until all of it is there. */
  next(): ReceivedRequest | undefined {
    this.#head ??= this.#readHead()
    const head = this.#head
    if (head === undefined || this.#bytes < head.endAt) return undefined
    const all = this.#joined()
    this.#head = undefined
    this.#pieces = [all.subarray(head.endAt)]
    this.#bytes -= head.endAt
    return { ...head.request, body: Buffer.from(all.subarray(head.bodyAt, head.endAt)) }
  }

  #joined(): Buffer {
    const [first, ...rest] = this.#pieces
    if (first !== undefined && rest.length === 0) return first
    const all = Buffer.concat(this.#pieces)
    this.#pieces = [all]
    return all
  }

  #readHead(): Head | undefined {
    const bytes = this.#joined()
    const headEnd = bytes.indexOf('\r\n\r\n')
    if (headEnd < 0) return undefined
    const [line = '', ...rows] = bytes.toString('latin1', 0, headEnd).split('\r\n')
    const [method = '', path = ''] = line.split(' ')
    const rawHeaders = rows.map((row): readonly [string, string] => {
      const colon = row.indexOf(':')
      return [row.slice(0, colon), row.slice(colon + 1).trim()]
    })
    const headers = Object.fromEntries(rawHeaders.map(([name, value]) => [name.toLowerCase(), value]))
    if (headers['transfer-encoding'] !== undefined)
      throw new Error('the scripted engine takes bodies with a length only')
    const bodyAt = headEnd + 4
    const endAt = bodyAt + Number(headers['content-length'] ?? 0)
    return { request: { method, path, headers, rawHeaders }, bodyAt, endAt }
  }
}
