/** Hands the last bytes of an answer over at the client's pace, and gives up on a client that takes none. */
import type { ServerResponse } from 'node:http'
import { MAX_DELAY_MS, type Ms } from '../core/units.ts'

/** What the client must take in one stall limit, so that a slow one is told from one that stands still. */
const PIECE_BYTES = 64 * 1024

/** Ends `outgoing` with `last`. When nothing of what is left goes out for `stallMs`, it is cut and forgotten. */
export function sendTail(outgoing: ServerResponse, last: Uint8Array | undefined, stallMs: Ms): void {
  let handedOver = 0
  const push = (): void => {
    while (last !== undefined && last.length - handedOver > PIECE_BYTES) {
      const from = handedOver
      handedOver += PIECE_BYTES
      if (!outgoing.write(last.subarray(from, handedOver))) return
    }
    outgoing.off('drain', push)
    if (last === undefined) outgoing.end()
    else outgoing.end(last.subarray(handedOver))
    handedOver = last?.length ?? 0
  }
  push()
  if (!outgoing.writableEnded) outgoing.on('drain', push)
  else if (outgoing.writableLength === 0) return
  let taken = handedOver - outgoing.writableLength
  const timer = setInterval(
    () => {
      // Behind another answer on the same connection its turn has not come.
      if (outgoing.socket === null) return
      const before = taken
      taken = handedOver - outgoing.writableLength
      if (taken <= before) outgoing.destroy()
    },
    Math.min(stallMs, MAX_DELAY_MS),
  )
  timer.unref()
  outgoing.once('close', () => clearInterval(timer))
}
