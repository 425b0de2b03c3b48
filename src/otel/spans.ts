/** Makes the spans of one request from its records: the request, its waits, its attempts, and the prefill and stream. */
import type { DecisionRecord } from '../core/records.ts'
import type { AttemptFacts, TraceFacts } from '../core/trace.ts'
import type { Ms } from '../core/units.ts'
import { ERROR_TABLE } from '../errors.ts'
import { bounded } from '../telemetry/log.ts'
import type { EndedRequest, RejectedRequest } from '../telemetry/request-sink.ts'
import {
  decisionAttributes,
  endAttributes,
  failureOf,
  generationAttributes,
  httpAttributes,
  operationAttributes,
} from './attributes.ts'
import type { SpanAttributes, SpanFacts } from './span-facts.ts'

export interface SpanPorts {
  /** 16 hex digits, never the same. */
  newSpanId(): string
  /** A replica's name for people, from its id. */
  nameOf(replicaId: string): string
  /** The kind of its engine, while it is known. */
  engineOf(replicaId: string): string | undefined
}

/** The spans of a request that was offered, the server span first. None unless its trace is recorded. */
export function spansOf(request: EndedRequest, ports: SpanPorts): SpanFacts[] {
  const { trace } = request.exchange
  return trace?.sampled === true ? new Story(request, trace, ports).spans() : []
}

/** The one span of a request that never became an offer; `nowMs` is its end. */
export function rejectedSpan({ code, tenant, trace }: RejectedRequest, nowMs: Ms): SpanFacts | undefined {
  if (trace?.sampled !== true) return undefined
  const row = Object.entries(ERROR_TABLE).find(([known]) => known === code)?.[1]
  const failed = row === undefined || row.status >= 500
  return {
    ...serverSpan(trace, nowMs),
    attributes: [
      httpAttributes(trace.path, row?.status),
      { 'sluice.reason': code, 'sluice.tenant': tenant === undefined ? undefined : bounded(tenant) },
      { 'error.type': failed ? code : undefined },
    ],
    error: failed ? code : undefined,
  }
}

function serverSpan(trace: TraceFacts, endMs: Ms): Omit<SpanFacts, 'attributes'> {
  return {
    name: `POST ${trace.path}`,
    kind: 'server',
    traceId: trace.traceId,
    spanId: trace.spanId,
    parentSpanId: trace.parentSpanId,
    parentIsRemote: true,
    tracestate: trace.tracestate,
    startMs: trace.arrivedAtMs,
    endMs,
  }
}

class Story {
  readonly #request: EndedRequest
  readonly #trace: TraceFacts
  readonly #ports: SpanPorts
  readonly #endMs: Ms
  readonly #failure: string | undefined

  constructor(request: EndedRequest, trace: TraceFacts, ports: SpanPorts) {
    const { offer, e2eMs } = request.settlement
    this.#request = request
    this.#trace = trace
    this.#ports = ports
    this.#endMs = offer.receivedAtMs + e2eMs
    this.#failure = failureOf(request)
  }

  spans(): SpanFacts[] {
    const spans = [this.#server()]
    let waitsFromMs: Ms | undefined = this.#request.settlement.offer.receivedAtMs
    for (const [index, attempt] of this.#trace.attempts.entries()) {
      spans.push(this.#queue(waitsFromMs ?? attempt.sentAtMs, attempt.sentAtMs))
      spans.push(this.#dispatch(attempt, index + 1))
      if (attempt.bounce === undefined) spans.push(...this.#generation(attempt))
      waitsFromMs = attempt.bounce?.atMs
    }
    if (waitsFromMs !== undefined) spans.push(this.#queue(waitsFromMs, this.#endMs))
    return spans
  }

  #server(): SpanFacts {
    const { settlement, exchange, decisions } = this.#request
    return {
      ...serverSpan(this.#trace, this.#endMs),
      attributes: [
        httpAttributes(this.#trace.path, exchange.status),
        this.#operation(settlement.replicaId),
        generationAttributes(this.#request),
        this.#decided(decisions.at(-1)),
        endAttributes(this.#request),
        { 'error.type': this.#failure },
      ],
      error: this.#failure,
    }
  }

  /** From the moment that it could have left to the one at which it did, or at which it was over. */
  #queue(startMs: Ms, endMs: Ms): SpanFacts {
    return this.#child('queue', this.#trace.spanId, { startMs, endMs })
  }

  /** One attempt, under the id that the engine was told. */
  #dispatch(facts: AttemptFacts, attempt: number): SpanFacts {
    const { spanId, replicaId, sentAtMs, bounce } = facts
    const sentBy = this.#request.decisions.find(
      ({ verdict, attempt: decided }) =>
        verdict.kind === 'admit' && verdict.replicaId === replicaId && decided === facts.attempt,
    )
    const error = bounce === undefined ? this.#failure : bounce.cause
    return {
      ...this.#child('dispatch', this.#trace.spanId, {
        startMs: sentAtMs,
        endMs: bounce?.atMs ?? this.#endMs,
        attributes: [
          this.#operation(replicaId),
          { 'sluice.replica': this.#ports.nameOf(replicaId) },
          this.#decided(sentBy),
          { 'sluice.attempt': attempt, 'error.type': error },
        ],
        error,
      }),
      kind: 'client',
      spanId,
    }
  }

  /** What a stream did: up to its first content, and from there to its end. */
  #generation({ spanId, sentAtMs }: AttemptFacts): SpanFacts[] {
    const { offer, ttftMs } = this.#request.settlement
    if (ttftMs === undefined) return []
    const firstMs = offer.receivedAtMs + ttftMs
    return [
      this.#child('prefill', spanId, { startMs: sentAtMs, endMs: firstMs }),
      this.#child('stream', spanId, { startMs: firstMs, endMs: this.#endMs, error: this.#failure }),
    ]
  }

  #operation(replicaId: string | undefined): SpanAttributes {
    const engine = replicaId === undefined ? undefined : this.#ports.engineOf(replicaId)
    return operationAttributes(this.#request.settlement.offer, engine)
  }

  #decided(decision: DecisionRecord | undefined): SpanAttributes {
    return decision === undefined ? {} : decisionAttributes(decision, (id) => this.#ports.nameOf(id))
  }

  #child(
    name: string,
    parentSpanId: string,
    span: Pick<SpanFacts, 'startMs' | 'endMs' | 'error'> & {
      readonly attributes?: readonly SpanAttributes[]
    },
  ): SpanFacts {
    return {
      name,
      kind: 'internal',
      traceId: this.#trace.traceId,
      spanId: this.#ports.newSpanId(),
      parentSpanId,
      parentIsRemote: false,
      tracestate: this.#trace.tracestate,
      ...span,
      attributes: span.attributes ?? [],
    }
  }
}
