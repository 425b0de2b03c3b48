/** Keeps strangers from what the token guards, and other sites' pages from posting through an operator's browser. */
import { createHash, timingSafeEqual } from 'node:crypto'
import type { Context, MiddlewareHandler } from 'hono'
import { problem } from './problem.ts'

/** Asks for `authorization: Bearer <token>` while a token is set. */
export function requireToken(token: () => string | undefined): MiddlewareHandler {
  return async (c, next) => {
    const wanted = token()
    if (wanted === undefined || wanted === '' || sameSecret(bearer(c), wanted)) return next()
    c.header('www-authenticate', 'Bearer realm="sluice admin"')
    return problem(
      c,
      401,
      'unauthorized',
      'Send the admin token as `authorization: Bearer <token>`; it is `admin.token` in the file.',
    )
  }
}

/** Browsers say where a request comes from; tools send no origin. */
export const sameOriginOnly: MiddlewareHandler = async (c, next) => {
  const origin = c.req.header('origin')
  if (origin === undefined || hostOf(origin) === c.req.header('host')) return next()
  return problem(c, 403, 'foreign_origin', 'This is not for pages of other sites; use a tool such as curl.')
}

/** The token of `authorization: Bearer`, or nothing. */
export function bearer(c: Context): string {
  return /^Bearer +(.+)$/i.exec(c.req.header('authorization') ?? '')?.[1]?.trim() ?? ''
}

/** Compares digests, so that neither content nor length shows in the time taken. */
export function sameSecret(given: string, wanted: string): boolean {
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest()
  return timingSafeEqual(digest(given), digest(wanted))
}

function hostOf(origin: string): string | undefined {
  try {
    return new URL(origin).host
  } catch {
    return undefined
  }
}
