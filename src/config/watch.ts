/** Tells when the file's content has changed, however it was written: in place, by rename, by a swapped symlink. */
import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { watch } from 'chokidar'

export interface WatchOptions {
  readonly path: string
  readonly onChange: () => void
  /** A fault of the watching itself; the file is then no longer watched reliably. */
  readonly onError?: (error: unknown) => void
}

export interface Watch {
  /** Settles when changes are seen from now on. */
  readonly ready: Promise<void>
  close(): Promise<void>
}

/**
 * Quiet time after the last sign of a change, in ms: editors and kubelets write in several steps. It has to stay above
 * the 50 ms within which chokidar drops further signs, or the last step of a change could be missed.
 */
const SETTLE_MS = 200

/** Calls `onChange` once per change of content; a file that is gone or rewritten with the same bytes is no change. */
export function watchConfig({ path, onChange, onError }: WatchOptions): Watch {
  let closed = false
  let timer: NodeJS.Timeout | undefined
  let checking = Promise.resolve()
  const first = hashOf(path)
  let known: string | undefined
  const check = async () => {
    known ??= await first
    const hash = await hashOf(path)
    if (closed || hash === undefined || hash === known) return
    known = hash
    onChange()
  }
  const settle = () => {
    clearTimeout(timer)
    if (closed) return
    timer = setTimeout(() => {
      checking = checking.then(check)
    }, SETTLE_MS)
  }
  const watcher = watch(path, { ignoreInitial: true, followSymlinks: true })
  watcher.on('all', settle)
  watcher.on('error', (error) => onError?.(error))
  const ready = new Promise<void>((resolve) => {
    watcher.on('ready', () => resolve())
  })
  const close = async () => {
    closed = true
    clearTimeout(timer)
    await watcher.close()
    await checking
  }
  // The file may have changed between its first reading and the watcher's readiness.
  return { ready: Promise.all([ready, first]).then(settle), close }
}

/** Undefined while the file can't be read, e.g. between two steps of a replacement. */
async function hashOf(path: string): Promise<string | undefined> {
  try {
    return createHash('sha256')
      .update(await readFile(path))
      .digest('hex')
  } catch {
    return undefined
  }
}
