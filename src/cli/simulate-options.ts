/** Reads what `sluice simulate` is told of arrivals, clients, engines and faults, or says what is wrong with it. */
import { InvalidArgumentError } from 'commander'
import { parseDuration, parseShare } from '../config/units.ts'
import type { Ms, Ratio } from '../core/units.ts'
import { schedulers } from '../policies/registry.ts'
import { type Arrivals, rateSegments } from '../sim/arrivals.ts'
import { HAMMERING_CLIENT, SDK_CLIENT } from '../sim/clients.ts'
import type { Disaggregation, Speculation } from '../sim/engine-types.ts'
import type { Fault } from '../sim/faults.ts'
import type { ClientModel } from '../sim/workload-types.ts'
import { NAMED_WORKLOADS } from '../sim/workloads.ts'
import { durationArgument, positiveArgument, wholeArgument } from './load-options.ts'

export function schedulersArgument(text: string): readonly string[] {
  const names = text.split(',').map((name) => name.trim())
  for (const name of names) checkName(name, schedulers.keys())
  return names
}

export function workloadArgument(text: string): string {
  return checkName(text, NAMED_WORKLOADS.keys())
}

export function countArgument(text: string): number {
  const count = wholeArgument(text)
  if (count < 1) throw new InvalidArgumentError('It must be at least 1.')
  return count
}

/** `90%` or `0.9`. */
export function shareArgument(text: string): Ratio {
  const parsed = parseShare(text)
  if (parsed.ok) return parsed.value
  throw new InvalidArgumentError([parsed.message, parsed.suggestion].filter(Boolean).join('; '))
}

/** `poisson`, `gamma:CV`, `bursts:ON:OFF:TIMES` or `diurnal:PERIOD:SWING`. */
export function arrivalsArgument(text: string): Arrivals {
  const [kind, ...values] = text.split(':')
  const arrivals = arrivalsOf(kind ?? '', values)
  if (arrivals === undefined) {
    throw new InvalidArgumentError(
      'It must be poisson, gamma:CV, bursts:ON:OFF:TIMES (e.g. bursts:5s:15s:2.5) or diurnal:PERIOD:SWING (e.g. diurnal:10m:0.6).',
    )
  }
  try {
    rateSegments(arrivals.rhythm, 1, 0, 1)
  } catch (cause) {
    throw new InvalidArgumentError(cause instanceof Error ? cause.message : String(cause))
  }
  return arrivals
}

function arrivalsOf(kind: string, values: readonly string[]): Arrivals | undefined {
  const [first = '', second = '', third = ''] = values
  const shape = `${kind}/${values.length}`
  if (shape === 'poisson/0') return {}
  if (shape === 'gamma/1') return { gapCv: positiveArgument(first) }
  if (shape === 'bursts/3') {
    const [onMs, offMs] = [durationArgument(first), durationArgument(second)]
    return { rhythm: { kind: 'onOff', onMs, offMs, onRatio: positiveArgument(third) } }
  }
  if (shape !== 'diurnal/2') return undefined
  return {
    rhythm: { kind: 'diurnal', periodMs: durationArgument(first), swingRatio: positiveArgument(second) },
  }
}

/** Clients by name; `patient` is the absence of any habit. */
export const CLIENTS: Readonly<Record<string, ClientModel>> = {
  patient: {},
  sdk: SDK_CLIENT,
  hammering: HAMMERING_CLIENT,
}

/** `TOKENS:ACCEPTANCE` or `TOKENS:ACCEPTANCE:COST`. */
export function speculationArgument(text: string): Speculation {
  const [draftTokens, acceptanceRatio, draftCostRatio = 0.05, ...more] = text.split(':').map(Number)
  const isShape = draftTokens !== undefined && acceptanceRatio !== undefined && more.length === 0
  if (isShape && [draftTokens, acceptanceRatio, draftCostRatio].every(Number.isFinite)) {
    return { draftTokens, acceptanceRatio, draftCostRatio }
  }
  throw new InvalidArgumentError('It must be TOKENS:ACCEPTANCE or TOKENS:ACCEPTANCE:COST, e.g. 4:0.7:0.05.')
}

/** 131 072 bytes a token (8B model, 16 bit) over 50 GB/s, and some ms to agree on it; assumed, not measured. */
const TRANSFER_PER_1K_TOKENS_MS: Ms = 2.6
const TRANSFER_BASE_MS: Ms = 2

/** `PREFILL:DECODE` engines, and `:MS` that 1000 tokens of KV take from the one to the other. */
export function disaggregationArgument(text: string): Disaggregation {
  const [prefillEngines, decodeEngines, perThousandMs = TRANSFER_PER_1K_TOKENS_MS, ...more] = text
    .split(':')
    .map(Number)
  const isCount = (count: number | undefined) => count !== undefined && Number.isInteger(count) && count >= 1
  if (isCount(prefillEngines) && isCount(decodeEngines) && perThousandMs >= 0 && more.length === 0) {
    return {
      prefillEngines: prefillEngines ?? 1,
      decodeEngines: decodeEngines ?? 1,
      transferBaseMs: TRANSFER_BASE_MS,
      transferPerTokenMs: perThousandMs / 1000,
    }
  }
  throw new InvalidArgumentError(
    'It must be PREFILL:DECODE engines, e.g. 1:1, or with ms per 1000 tokens, 1:1:2.6.',
  )
}

const FAULT = /^([a-z-]+)(?:=([^@/]+))?(?:@([^-/]+)(?:-([^/]+))?)?(?:\/(\d+))?$/
const FAULT_HELP =
  'It must be slow=RATIO, dead, frozen-metrics, lost-metrics, late-metrics=TIME, tokenizer=RATIO or estimator=RATIO, then @FROM or @FROM-TO, then /REPLICA, e.g. slow=0.5@20s-40s/1.'

/** One fault; several options make a list. */
export function faultArgument(text: string, earlier: readonly Fault[] = []): readonly Fault[] {
  const [, kind = '', value = '', from, to, replica] = FAULT.exec(text) ?? []
  const span = {
    ...(from === undefined ? {} : { fromMs: instantOf(from) }),
    ...(to === undefined ? {} : { toMs: instantOf(to) }),
  }
  const fault = faultOf(kind, value, replica === undefined ? undefined : Number(replica))
  if (fault === undefined) throw new InvalidArgumentError(FAULT_HELP)
  if (replica !== undefined && !('replicaIndex' in fault)) {
    throw new InvalidArgumentError(`"${kind}" is of the whole fleet: leave /REPLICA out.`)
  }
  if (fault.kind !== 'estimatorBias') return [...earlier, { ...fault, ...span }]
  if (from === undefined) return [...earlier, fault]
  throw new InvalidArgumentError(`"${kind}" holds from the start: leave @FROM out.`)
}

function faultOf(kind: string, value: string, replica: number | undefined): Fault | undefined {
  const replicaIndex = replica ?? 0
  const some = replica === undefined ? {} : { replicaIndex: replica }
  switch (kind) {
    case 'slow':
      return { kind: 'slow', speedRatio: positiveArgument(value), replicaIndex }
    case 'dead':
      return { kind: 'dead', replicaIndex }
    case 'frozen-metrics':
      return { kind: 'frozenMetrics', ...some }
    case 'lost-metrics':
      return { kind: 'lostMetrics', ...some }
    case 'late-metrics':
      return { kind: 'lateMetrics', lagMs: durationArgument(value) }
    case 'tokenizer':
      return { kind: 'tokenizerBias', ratio: positiveArgument(value) }
    case 'estimator':
      return { kind: 'estimatorBias', ratio: positiveArgument(value) }
    default:
      return undefined
  }
}

/** A duration that may be 0. */
function instantOf(text: string): Ms {
  const parsed = parseDuration(text)
  if (parsed.ok) return parsed.value
  throw new InvalidArgumentError([parsed.message, parsed.suggestion].filter(Boolean).join('; '))
}

function checkName(name: string, known: Iterable<string>): string {
  const names = [...known]
  if (names.includes(name)) return name
  throw new InvalidArgumentError(`"${name}" is none of ${names.join(', ')}.`)
}
