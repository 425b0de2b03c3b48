/** The metrics that OpenTelemetry's conventions want of a generative server, counted as requests end. */
import type { Attributes, Histogram, Meter } from '@opentelemetry/api'
import { tpotSampleMs } from '../slo/series.ts'
import { BASE_BOUNDS } from '../telemetry/metric-table.ts'
import type { EndedRequest } from '../telemetry/request-sink.ts'
import { operationAttributes } from './attributes.ts'

/** Bounds of the conventions (semantic-conventions v1.41); TTFT goes on where ours do, since overload lives there. */
const TTFT_BOUNDS = [0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10]
const TPOT_BOUNDS = [0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5]
const DURATION_BOUNDS = Array.from({ length: 14 }, (_, power) => 0.01 * 2 ** power)

const seconds = (description: string, bounds: readonly number[]) => ({
  unit: 's',
  description,
  advice: { explicitBucketBoundaries: [...bounds] },
})

export class GenerationMetrics {
  readonly #duration: Histogram
  readonly #ttft: Histogram
  readonly #tpot: Histogram

  constructor(meter: Meter) {
    const longTtft = BASE_BOUNDS.ttft.filter((bound) => bound > 10)
    this.#duration = meter.createHistogram(
      'gen_ai.server.request.duration',
      seconds('From the last body byte in to the end of the answer', DURATION_BOUNDS),
    )
    this.#ttft = meter.createHistogram(
      'gen_ai.server.time_to_first_token',
      seconds('From the last body byte in to the first generated token out', [...TTFT_BOUNDS, ...longTtft]),
    )
    this.#tpot = meter.createHistogram(
      'gen_ai.server.time_per_output_token',
      seconds('Per output token after the first', TPOT_BOUNDS),
    )
  }

  /** Token times of completed answers only, as the conventions want. Routes that generate nothing are left out. */
  ended({ settlement }: EndedRequest, engine: string | undefined): void {
    const { offer, outcome, e2eMs, ttftMs } = settlement
    const { 'gen_ai.operation.name': operation, ...rest } = operationAttributes(offer, engine)
    if (operation === undefined) return
    const labels = { 'gen_ai.operation.name': operation, ...rest } as Attributes
    if (outcome !== 'completed') {
      const errorType = settlement.shedReason ?? outcome
      this.#duration.record(Math.max(0, e2eMs) / 1000, { ...labels, 'error.type': errorType })
      return
    }
    this.#duration.record(Math.max(0, e2eMs) / 1000, labels)
    if (ttftMs !== undefined) this.#ttft.record(Math.max(0, ttftMs) / 1000, labels)
    const tpotMs = tpotSampleMs(settlement)
    if (tpotMs !== undefined) this.#tpot.record(Math.max(0, tpotMs) / 1000, labels)
  }
}
