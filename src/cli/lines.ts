/** Reads files and standard input line by line, unpacked on the way, without holding more than a line of them. */
import { createReadStream } from 'node:fs'
import { createGunzip } from 'node:zlib'

const GZIP_MAGIC = [0x1f, 0x8b]

/** Chunks of a file, unpacked when they begin like a gzip file, whatever its name. */
export function chunksOf(file: string): AsyncIterable<Uint8Array> {
  return unpacked(createReadStream(file))
}

/** The same chunks, or what they hold when they are gzipped. */
export async function* unpacked(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const iterator = chunks[Symbol.asyncIterator]()
  const first = await iterator.next()
  if (first.done === true) return
  const rest = async function* () {
    yield first.value
    for (let next = await iterator.next(); next.done !== true; next = await iterator.next()) yield next.value
  }
  if (!GZIP_MAGIC.every((byte, at) => first.value[at] === byte)) yield* rest()
  else yield* gunzipped(rest())
}

async function* gunzipped(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const gunzip = createGunzip()
  const fed = feed(gunzip, chunks).catch((error: Error) => void gunzip.destroy(error))
  yield* gunzip
  await fed
}

async function feed(into: ReturnType<typeof createGunzip>, chunks: AsyncIterable<Uint8Array>): Promise<void> {
  for await (const chunk of chunks) {
    if (into.destroyed) return
    if (!into.write(chunk)) {
      await new Promise<void>((resolve) => {
        into.once('drain', resolve)
        into.once('close', resolve)
      })
    }
  }
  into.end()
}

/** Lines without their ends. Undefined stands for a line of more than `longestChars`, which is skipped. */
export async function* linesOf(
  chunks: AsyncIterable<Uint8Array>,
  longestChars: number,
): AsyncGenerator<string | undefined, void, undefined> {
  const decoder = new TextDecoder()
  let rest = ''
  let tooLong = false
  for await (const chunk of chunks) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) {
      yield tooLong ? undefined : line
      tooLong = false
    }
    if (tooLong || rest.length > longestChars) {
      tooLong = true
      rest = ''
    }
  }
  yield tooLong ? undefined : rest
}
