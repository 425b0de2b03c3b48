/** Keeps tenants within their own limits: concurrent requests, requests a second and tokens a minute. */
import type { TenantLimits } from './gate-settings.ts'
import type { Ms, Tokens } from './units.ts'

interface Bucket {
  level: number
  atMs: Ms
}

interface TenantBooks {
  concurrentRequests: number
  requests: Bucket
  tokens: Bucket
}

/** How long a refused tenant should stay away when only a running request's end can help, in ms. */
const CONCURRENCY_RETRY_MS: Ms = 1000

export class TenantLimiter {
  #books = new Map<string, TenantBooks>()

  /**
   * Takes a place for one request of `tokens` prompt tokens. Returns undefined when it was taken, else the time in
   * ms after which a retry can succeed. A bucket holds one second of requests (at least one) or one minute of tokens;
   * a request larger than the whole bucket passes when the bucket is full, and is paid off afterwards.
   */
  take(tenant: string, limits: TenantLimits | undefined, tokens: Tokens, nowMs: Ms): Ms | undefined {
    const books = this.#open(tenant, nowMs)
    if (limits === undefined) {
      books.concurrentRequests++
      return undefined
    }
    if (limits.concurrentRequests !== undefined && books.concurrentRequests >= limits.concurrentRequests) {
      return CONCURRENCY_RETRY_MS
    }
    const perSec = limits.requestsPerSec
    const perMin = limits.tokensPerMin
    const requestWaitMs =
      perSec === undefined ? 0 : refill(books.requests, Math.max(1, perSec), perSec / 1000, 1, nowMs)
    const tokenWaitMs =
      perMin === undefined ? 0 : refill(books.tokens, perMin, perMin / 60_000, tokens, nowMs)
    const waitMs = Math.max(requestWaitMs, tokenWaitMs)
    if (waitMs > 0) return waitMs
    if (perSec !== undefined) books.requests.level -= 1
    if (perMin !== undefined) books.tokens.level -= tokens
    books.concurrentRequests++
    return undefined
  }

  /** Gives a place back. Books of a tenant without limits are closed with its last request. */
  release(tenant: string, limits: TenantLimits | undefined): void {
    const books = this.#books.get(tenant)
    if (books === undefined || books.concurrentRequests === 0) {
      throw new RangeError(`tenant ${tenant} has no request to give back`)
    }
    books.concurrentRequests--
    if (limits === undefined && books.concurrentRequests === 0) this.#books.delete(tenant)
  }

  /** Requests of that tenant between take and release. */
  concurrentRequests(tenant: string): number {
    return this.#books.get(tenant)?.concurrentRequests ?? 0
  }

  #open(tenant: string, nowMs: Ms): TenantBooks {
    let books = this.#books.get(tenant)
    if (books === undefined) {
      // Filled to the brim, wherever that is: a limit may be configured only later.
      books = {
        concurrentRequests: 0,
        requests: { level: Number.POSITIVE_INFINITY, atMs: nowMs },
        tokens: { level: Number.POSITIVE_INFINITY, atMs: nowMs },
      }
      this.#books.set(tenant, books)
    }
    return books
  }
}

/** Refills a bucket up to now and says how long until `need` (or a full bucket) is there, in ms. */
function refill(bucket: Bucket, size: number, perMs: number, need: number, nowMs: Ms): Ms {
  bucket.level = Math.min(size, bucket.level + (nowMs - bucket.atMs) * perMs)
  bucket.atMs = nowMs
  const missing = Math.min(need, size) - bucket.level
  return missing <= 1e-9 ? 0 : missing / perMs
}
