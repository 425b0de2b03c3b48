/** Asks the admin port of a running Sluice, for commands that show what it says. */
import { Option } from 'commander'
import type { Ms } from '../core/units.ts'

export interface AdminAddress {
  readonly url: string
  readonly token?: string
}

const ANSWER_WITHIN_MS: Ms = 5000

/** `--url` and `--token`, both also from the environment. */
export function adminOptions(): readonly Option[] {
  return [
    new Option('--url <url>', 'address of the admin port')
      .env('SLUICE_ADMIN_URL')
      .default('http://127.0.0.1:9090'),
    new Option('--token <token>', 'the admin token, to see decisions; better set in the environment').env(
      'SLUICE_ADMIN_TOKEN',
    ),
  ]
}

/**
 * Everything that the console shows now, in the words of the port: an `Overview` once it is `camelCased`. Decisions are
 * null without the right token. Rejects with what to do.
 */
export function fetchOverview(address: AdminAddress): Promise<unknown> {
  return ask(address, '/overview')
}

/** What is held of one request, likewise: a `RingEntry`, or none. */
export async function fetchStory(address: AdminAddress, requestId: string): Promise<unknown> {
  const path = `/decisions?limit=1&request_id=${encodeURIComponent(requestId)}`
  const { decisions } = (await ask(address, path)) as { readonly decisions: readonly unknown[] }
  return decisions[0]
}

async function ask({ url, token }: AdminAddress, path: string): Promise<unknown> {
  const headers = token === undefined || token === '' ? {} : { authorization: `Bearer ${token}` }
  let answer: Response
  try {
    answer = await fetch(new URL(path, url), { headers, signal: AbortSignal.timeout(ANSWER_WITHIN_MS) })
  } catch (error) {
    throw new Error(`no answer from ${url} (${reasonOf(error)}); is that the admin port of a running Sluice?`)
  }
  if (answer.status === 401)
    throw new Error('the admin token is wanted: set SLUICE_ADMIN_TOKEN to `admin.token` of the file')
  const found: unknown = await answer.json().catch(() => undefined)
  if (!answer.ok || found === undefined)
    throw new Error(`${url} answers ${answer.status} to ${path}: that is not the admin port of this version`)
  return found
}

function reasonOf(error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error
  return cause instanceof Error ? cause.message : String(cause)
}
