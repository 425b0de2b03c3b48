/** Lets a browser that has shown the admin token read decisions on the page: a cookie that proves it and tells nothing. */
import { createHmac, randomBytes } from 'node:crypto'
import type { Context } from 'hono'
import { deleteCookie, getCookie, setCookie } from 'hono/cookie'
import { bearer, sameSecret } from '../guard.ts'

const COOKIE = 'sluice_console'
const LASTS_SEC = 12 * 3600

/** The answer to a token that was offered. */
export type SignIn = 'in' | 'out' | 'refused'

export class Sessions {
  /** Of this process: a restart ends every session, and so does a new token. */
  readonly #key = randomBytes(32)
  readonly #token: () => string | undefined

  constructor(token: () => string | undefined) {
    this.#token = token
  }

  /** Whether the asker may read decisions: nothing guards them, or it shows the token or a cookie of ours. To be asked
   * again while its stream lasts, since the token may change. */
  admits(c: Context): () => boolean {
    const [cookie, shown] = [getCookie(c, COOKIE) ?? '', bearer(c)]
    return () => {
      const token = this.#token()
      if (token === undefined || token === '') return true
      return sameSecret(shown, token) || sameSecret(cookie, this.#proofOf(token))
    }
  }

  /** Takes a token from the form: the right one signs in, none signs out. */
  offer(c: Context, offered: string): SignIn {
    if (offered === '') {
      deleteCookie(c, COOKIE, { path: '/' })
      return 'out'
    }
    const token = this.#token()
    if (token === undefined || token === '') return 'in'
    if (!sameSecret(offered, token)) return 'refused'
    setCookie(c, COOKIE, this.#proofOf(token), {
      path: '/',
      httpOnly: true,
      sameSite: 'Strict',
      maxAge: LASTS_SEC,
    })
    return 'in'
  }

  #proofOf(token: string): string {
    return createHmac('sha256', this.#key).update(token).digest('hex')
  }
}
