/** Decides which traces are recorded, by the samplers of the SDK under their standard names. */
import { ROOT_CONTEXT, SpanKind, TraceFlags, trace } from '@opentelemetry/api'
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  ParentBasedSampler,
  type Sampler,
  SamplingDecision,
  TraceIdRatioBasedSampler,
} from '@opentelemetry/sdk-trace'
import type { TraceSettings } from './settings.ts'

/** The client's span, as far as sampling looks at it. */
export interface ParentSpan {
  readonly traceId: string
  readonly spanId: string
  readonly sampled: boolean
}

/** Whether a trace is recorded; a pure function of its id, its parent and the settings. */
export type SampleDecision = (traceId: string, parent: ParentSpan | undefined) => boolean

export function samplerOf(settings: Pick<TraceSettings, 'sampler' | 'sampleRatio'>): SampleDecision {
  const sampler = named(settings)
  return (traceId, parent) => {
    const context = parent === undefined ? ROOT_CONTEXT : contextOf(parent)
    const { decision } = sampler.shouldSample(context, traceId, '', SpanKind.SERVER, {}, [])
    return decision === SamplingDecision.RECORD_AND_SAMPLED
  }
}

function contextOf({ traceId, spanId, sampled }: ParentSpan): typeof ROOT_CONTEXT {
  const traceFlags = sampled ? TraceFlags.SAMPLED : TraceFlags.NONE
  return trace.setSpanContext(ROOT_CONTEXT, { traceId, spanId, traceFlags, isRemote: true })
}

function named({ sampler, sampleRatio }: Pick<TraceSettings, 'sampler' | 'sampleRatio'>): Sampler {
  switch (sampler) {
    case 'always_on':
      return new AlwaysOnSampler()
    case 'always_off':
      return new AlwaysOffSampler()
    case 'traceidratio':
      return new TraceIdRatioBasedSampler(sampleRatio)
    case 'parentbased_always_on':
      return new ParentBasedSampler({ root: new AlwaysOnSampler() })
    case 'parentbased_always_off':
      return new ParentBasedSampler({ root: new AlwaysOffSampler() })
    case 'parentbased_traceidratio':
      return new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(sampleRatio) })
    default:
      return sampler satisfies never
  }
}
