/** Reads a request body once, within its limits of size, memory and time. */
import type { IncomingMessage } from 'node:http'
import type { Ms } from '../core/units.ts'
import { ProxyError } from '../errors.ts'
import type { BufferLease } from './buffers.ts'
import type { Clock } from './clock.ts'
import { Pieces } from './pieces.ts'

export interface BodyLimits {
  readonly bodyBytes: number
  /** Longest silence of the client while it uploads, in ms. */
  readonly idleMs: Ms
  /** Longest upload in all, in ms. */
  readonly totalMs: Ms
}

/** The client went away while it was still sending: nobody is left to answer. */
export class ClientGone extends Error {
  override readonly name = 'ClientGone'
}

/**
 * The whole body. Rejects with a ProxyError (`too_large`, `unsupported_encoding`, `request_timeout`, `buffers_full`)
 * as soon as it is certain, leaving the rest unread, or with ClientGone.
 */
export function readBody(
  incoming: IncomingMessage,
  limits: BodyLimits,
  lease: BufferLease,
  clock: Clock,
): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    refuseByHeaders(incoming, limits)
    const pieces = new Pieces()
    const startedAtMs = clock.nowMs()
    let heardAtMs = startedAtMs
    let cancelTimer = () => {}
    const stop = () => {
      cancelTimer()
      incoming.off('data', onPiece).off('end', onEnd).off('close', onGone).off('error', onGone)
      incoming.pause()
    }
    const fail = (error: Error) => {
      stop()
      reject(error)
    }
    const onPiece = (piece: Buffer) => {
      heardAtMs = clock.nowMs()
      if (pieces.bytes + piece.length > limits.bodyBytes) return fail(tooLarge(limits))
      try {
        lease.grow(piece.length)
      } catch (error) {
        return fail(error as Error)
      }
      pieces.add(piece)
    }
    const onEnd = () => {
      stop()
      resolve(pieces.whole())
    }
    const onGone = () => fail(new ClientGone('the client left during its upload'))
    const watch = () => {
      const nowMs = clock.nowMs()
      const dueAtMs = Math.min(heardAtMs + limits.idleMs, startedAtMs + limits.totalMs)
      if (nowMs >= dueAtMs) return fail(tooSlow(pieces.bytes))
      cancelTimer = clock.after(dueAtMs - nowMs, watch)
    }
    incoming.on('data', onPiece).on('end', onEnd).on('close', onGone).on('error', onGone)
    watch()
  })
}

function refuseByHeaders(incoming: IncomingMessage, limits: BodyLimits): void {
  const encoding = incoming.headers['content-encoding']?.trim().toLowerCase()
  if (encoding !== undefined && encoding !== '' && encoding !== 'identity') {
    throw new ProxyError(
      'unsupported_encoding',
      `content-encoding ${JSON.stringify(encoding)} is not taken; send the body uncompressed`,
    )
  }
  if (Number(incoming.headers['content-length'] ?? 0) > limits.bodyBytes) throw tooLarge(limits)
}

function tooLarge(limits: BodyLimits): ProxyError {
  return new ProxyError('too_large', `the body is larger than limits.body (${limits.bodyBytes} bytes)`)
}

function tooSlow(bytes: number): ProxyError {
  return new ProxyError('request_timeout', `the upload stalled after ${bytes} bytes`)
}
