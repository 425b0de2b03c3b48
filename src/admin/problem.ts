/** The one shape of an error on the admin port: what is wrong and what to do. */
import type { Context } from 'hono'

export type ProblemStatus = 400 | 401 | 403 | 404 | 405 | 422 | 500 | 503

export function problem(
  c: Context,
  status: ProblemStatus,
  code: string,
  message: string,
  more: object = {},
): Response {
  return c.json({ error: { code, message, ...more } }, status)
}
