/** The load report of Open Request Cost Aggregation (ORCA), in the response header that gRPC, Envoy and vLLM agree on. */
import type { IncomingHttpHeaders } from 'node:http'
import type { Ratio } from '../core/units.ts'

/** Who wants a report says in which form. */
const ASKED_BY = 'endpoint-load-metrics-format'
const HEADER = 'endpoint-load-metrics'
/** A utilization of 0 would make a weight infinite. */
const LEAST_UTILIZATION = 0.01

/**
 * `application_utilization`: what is offered over what the fleet can carry, above 1 under overload. Empty for clients
 * that did not ask, and while nothing is known.
 */
export function loadReport(
  incoming: IncomingHttpHeaders,
  headroom: Ratio | undefined,
): Readonly<Record<string, string>> {
  const form = incoming[ASKED_BY]
  if (typeof form !== 'string' || headroom === undefined) return {}
  const most = 1 / LEAST_UTILIZATION
  const utilization = Math.min(most, Math.max(LEAST_UTILIZATION, headroom > 0 ? 1 / headroom : most))
  const value = Math.round(utilization * 1000) / 1000
  switch (form.trim().toUpperCase()) {
    case 'TEXT':
      return { [HEADER]: `TEXT application_utilization=${value}` }
    case 'JSON':
      return { [HEADER]: `JSON {"application_utilization": ${value}}` }
    default:
      return {}
  }
}
