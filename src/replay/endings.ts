/** How each request of a log ended, in a few bytes each: as logged, judged anew, or simulated. */
import type { ShedReason } from '../core/effects.ts'
import type { Settlement, SloVerdict } from '../core/records.ts'
import type { SloClass } from '../core/request.ts'
import type { Ms } from '../core/units.ts'
import { toOffer } from '../sim/offer.ts'
import { judge } from '../slo/judge.ts'
import type { LoggedRequest } from './logged-request.ts'

export interface Ending {
  readonly verdict: SloVerdict['kind']
  readonly outcome: Settlement['outcome']
  readonly shedReason?: ShedReason | undefined
  readonly ttftMs?: Ms | undefined
  readonly tpotMs?: Ms | undefined
}

const VERDICTS = ['good', 'bad', 'excluded'] as const

/** Endings by the number of the request. */
export class Endings {
  /** 0: not there; else one more than the place in the list. */
  readonly #verdicts: Uint8Array
  readonly #shedReasons: Uint8Array
  readonly #reasons: string[] = []
  readonly #ttftMs: Float32Array
  readonly #tpotMs: Float32Array

  constructor(count: number) {
    this.#verdicts = new Uint8Array(count)
    this.#shedReasons = new Uint8Array(count)
    this.#ttftMs = new Float32Array(count).fill(Number.NaN)
    this.#tpotMs = new Float32Array(count).fill(Number.NaN)
  }

  set(number: number, ending: Ending): void {
    this.#verdicts[number] = VERDICTS.indexOf(ending.verdict) + 1
    this.#ttftMs[number] = ending.ttftMs ?? Number.NaN
    this.#tpotMs[number] = ending.tpotMs ?? Number.NaN
    if (ending.outcome !== 'shed') return
    const reason = ending.shedReason ?? 'unknown'
    if (!this.#reasons.includes(reason)) this.#reasons.push(reason)
    this.#shedReasons[number] = this.#reasons.indexOf(reason) + 1
  }

  /** Undefined when the request has no ending here. */
  verdict(number: number): SloVerdict['kind'] | undefined {
    return VERDICTS[(this.#verdicts[number] ?? 0) - 1]
  }

  /** Undefined when it was not refused. */
  shedReason(number: number): string | undefined {
    return this.#reasons[(this.#shedReasons[number] ?? 0) - 1]
  }

  ttftMs(number: number): Ms | undefined {
    return finite(this.#ttftMs[number])
  }

  tpotMs(number: number): Ms | undefined {
    return finite(this.#tpotMs[number])
  }
}

/** What the log says. */
export function loggedEndings(requests: readonly LoggedRequest[]): Endings {
  const endings = new Endings(requests.length)
  for (const [number, request] of requests.entries()) endings.set(number, request)
  return endings
}

/** What the log would say, had these been the promises. Requests without a promise have no ending. */
export function judgedAnew(
  requests: readonly LoggedRequest[],
  sloOf: (request: LoggedRequest) => SloClass | undefined,
): Endings {
  const endings = new Endings(requests.length)
  for (const [number, request] of requests.entries()) {
    const slo = sloOf(request)
    if (slo !== undefined) endings.set(number, { ...request, verdict: verdictBy(request, slo) })
  }
  return endings
}

/** The verdict on what was measured, by that promise. */
function verdictBy(request: LoggedRequest, slo: SloClass): SloVerdict['kind'] {
  const { outcome, shedReason, e2eMs, ttftMs, tpotMs, promptTokens, outputTokens } = request
  const { streamed, sequences, maxOutputTokens } = request
  const unsent = { id: request.id, className: slo.name, promptTokens, outputTokens }
  const told = { streamed, sequences }
  const offer = toOffer(
    { ...unsent, told, ...(maxOutputTokens === undefined ? {} : { maxTokens: maxOutputTokens }) },
    slo,
    { pool: request.model, retryCount: 0, hashes: [], countRatio: 1, receivedAtMs: 0 },
  )
  return judge({
    offer,
    outcome,
    ...(shedReason === undefined ? {} : { shedReason }),
    e2eMs,
    ...(ttftMs === undefined ? {} : { ttftMs }),
    ...(tpotMs === undefined ? {} : { tpotMs }),
    promptTokens,
    outputTokens,
    slowReader: request.cause === 'slow_reader',
  }).kind
}

function finite(value: number | undefined): number | undefined {
  return value === undefined || Number.isNaN(value) ? undefined : value
}
