/** Flags of many requests as one short text. */

export function packBits(flags) {
  const bytes = Buffer.alloc(Math.ceil(flags.length / 8))
  flags.forEach((flag, index) => {
    if (flag) bytes[index >> 3] |= 1 << (index & 7)
  })
  return bytes.toString('base64')
}

/** The first `count` flags of what `packBits` made. */
export function unpackBits(text, count) {
  const bytes = Buffer.from(text, 'base64')
  return Array.from({ length: count }, (_, index) => ((bytes[index >> 3] ?? 0) & (1 << (index & 7))) !== 0)
}
