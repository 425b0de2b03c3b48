/** Asks a replica for one token, to learn whether it works at all. */
import type { Ms } from '../core/units.ts'
import type { EngineAdapter } from '../engines/adapter.ts'
import type { Connection } from './connection.ts'
import { fetchBody } from './fetch-body.ts'

/** What the probe showed; `message` says why not. */
export type ProbeResult = { readonly passed: true } | { readonly passed: false; readonly message: string }

/** Long enough for a first request after a cold start, short enough that recovery is a matter of seconds. */
export const PROBE_DEADLINE_MS: Ms = 10_000
const CAP_BYTES = 256 * 1024

/**
 * A full engine (429, 503) passes: it is busy, not broken. So does one that refuses the probe as a client's mistake,
 * as a model without plain completions does. Never rejects, and settles within the deadline.
 */
export async function probe(
  connection: Connection,
  adapter: EngineAdapter,
  servedName: string,
  deadlineMs: Ms = PROBE_DEADLINE_MS,
): Promise<ProbeResult> {
  const { path, body } = adapter.probe(servedName)
  const headers = { 'content-type': 'application/json' }
  const fetched = await fetchBody(connection, {
    method: 'POST',
    path,
    headers,
    body,
    deadlineMs,
    capBytes: CAP_BYTES,
  })
  if (fetched.kind === 'too_large') return { passed: true }
  if (fetched.kind === 'fault') return { passed: false, message: fetched.fault.message }
  const verdict = adapter.classify(fetched.status, fetched.body)
  const broken = verdict.class === 'engine_error' || verdict.class === 'draining'
  return broken ? { passed: false, message: verdict.message } : { passed: true }
}
