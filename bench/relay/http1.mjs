/** Just enough HTTP/1.1 for the bench's own ends: heads, and bodies with a length or in chunks, cut anywhere. */

const HEAD_END = Buffer.from('\r\n\r\n')

/** Reads one message after another. `onHead(startLine, headers)`, `onBody(bytes)`, `onEnd()`. */
export function messageReader({ onHead, onBody, onEnd }) {
  let pending = Buffer.alloc(0)
  let state = 'head'
  let left = 0
  const advance = {
    head() {
      const end = pending.indexOf(HEAD_END)
      if (end < 0) return false
      const [startLine, ...lines] = pending.latin1Slice(0, end).split('\r\n')
      const headers = Object.fromEntries(
        lines.map((line) => [
          line.slice(0, line.indexOf(':')).toLowerCase(),
          line.slice(line.indexOf(':') + 1).trim(),
        ]),
      )
      pending = pending.subarray(end + 4)
      onHead(startLine, headers)
      if (headers['transfer-encoding'] === 'chunked') state = 'size'
      else {
        left = Number(headers['content-length'] ?? 0)
        state = left === 0 ? finish() : 'fixed'
      }
      return true
    },
    fixed() {
      if (!body()) return false
      if (left === 0) state = finish()
      return true
    },
    size() {
      const end = pending.indexOf('\r\n')
      if (end < 0) return false
      left = Number.parseInt(pending.latin1Slice(0, end), 16)
      if (Number.isNaN(left)) throw new Error(`bad chunk size ${JSON.stringify(pending.latin1Slice(0, end))}`)
      pending = pending.subarray(end + 2)
      state = left === 0 ? 'last' : 'chunk'
      return true
    },
    chunk() {
      if (!body()) return false
      if (left === 0) state = 'crlf'
      return true
    },
    crlf() {
      if (pending.length < 2) return false
      pending = pending.subarray(2)
      state = 'size'
      return true
    },
    last() {
      if (pending.length < 2) return false
      pending = pending.subarray(2)
      state = finish()
      return true
    },
  }
  function body() {
    if (pending.length === 0) return false
    const bytes = pending.subarray(0, left)
    pending = pending.subarray(bytes.length)
    left -= bytes.length
    onBody(bytes)
    return true
  }
  function finish() {
    onEnd()
    return 'head'
  }
  return (bytes) => {
    pending = pending.length === 0 ? bytes : Buffer.concat([pending, bytes])
    while (advance[state]());
  }
}

/** One HTTP chunk in one buffer. */
export function chunkOf(bytes) {
  return Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from('\r\n')])
}
