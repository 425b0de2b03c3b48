/** An OTLP/HTTP receiver on loopback that decodes what comes, or refuses it, or never answers. */
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { until } from './deadline.ts'
import { listenOnLoopback } from './loopback.ts'
import { metricsIn, type SeenMetric, type SeenSpan, spansIn } from './otlp-shapes.ts'
import { decodeRequest } from './otlp-wire.ts'

export class OtlpReceiver {
  readonly spans: SeenSpan[] = []
  /** The last export of metrics. */
  metrics: SeenMetric[] = []
  readonly headers: IncomingHttpHeaders[] = []
  readonly problems: string[] = []
  requests = 0
  /** `silent`: takes what comes and never answers. `refuses`: in a way that no retry helps. */
  manner: 'answers' | 'silent' | 'refuses' = 'answers'
  readonly #server: Server

  constructor() {
    this.#server = createServer((incoming, outgoing) => {
      const pieces: Buffer[] = []
      incoming.on('data', (piece: Buffer) => pieces.push(piece))
      incoming.on('end', () => {
        this.requests += 1
        this.headers.push(incoming.headers)
        if (this.manner === 'silent') return
        if (this.manner === 'refuses') {
          outgoing.writeHead(400).end()
          return
        }
        this.#take(incoming.url ?? '', incoming.headers, Buffer.concat(pieces))
        outgoing.writeHead(200, { 'content-type': incoming.headers['content-type'] ?? '' })
        outgoing.end(incoming.headers['content-type'] === 'application/json' ? '{}' : '')
      })
    })
  }

  #take(url: string, headers: IncomingHttpHeaders, body: Buffer): void {
    try {
      if (url === '/v1/traces') this.spans.push(...spansIn(decodeRequest('traces', headers, body)))
      else if (url === '/v1/metrics') this.metrics = metricsIn(decodeRequest('metrics', headers, body))
      else throw new Error(`nothing is at ${url}`)
    } catch (error) {
      this.problems.push(String(error))
    }
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  async spansNamed(name: string, count = 1): Promise<readonly SeenSpan[]> {
    const named = () => this.spans.filter((span) => span.name === name)
    await until(() => named().length >= count, `${count} spans named ${name}`)
    return named()
  }

  metric(name: string): SeenMetric {
    const found = this.metrics.find((metric) => metric.name === name)
    if (found === undefined) throw new Error(`no metric ${name} came`)
    return found
  }

  async listen(): Promise<void> {
    await listenOnLoopback(this.#server)
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
    if (this.problems.length > 0) throw new Error(`not OTLP: ${this.problems.join('; ')}`)
  }
}

export async function otlpReceiver(): Promise<OtlpReceiver> {
  const receiver = new OtlpReceiver()
  await receiver.listen()
  return receiver
}
