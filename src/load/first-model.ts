/** Asks an OpenAI-compatible address what it serves, before any load is sent there. */
import { request } from 'undici'
import type { Ms } from '../core/units.ts'

const PREFLIGHT_MS: Ms = 10_000

/** The first model that the address names. Throws with what to do when it does not answer as it should. */
export async function firstModel(url: string, apiKey: string | undefined): Promise<string> {
  const base = url.replace(/\/+$/, '').replace(/\/v1$/, '')
  const advice = 'is the address right? (or name the model with --model)'
  const headers = apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` }
  const times = { headersTimeout: PREFLIGHT_MS, bodyTimeout: PREFLIGHT_MS }
  const answer = await request(`${base}/v1/models`, { headers, ...times }).catch((error: Error) => {
    throw new Error(
      `${base} does not answer (${(error as NodeJS.ErrnoException).code ?? error.message}); ${advice}`,
    )
  })
  const text = await answer.body.text()
  try {
    const { data } = JSON.parse(text) as { readonly data: readonly { readonly id: string }[] }
    const model = data[0]?.id
    if (model !== undefined) return model
  } catch {
    // Said below, with the status.
  }
  throw new Error(`${base}/v1/models answered ${answer.statusCode} and named no model; ${advice}`)
}
