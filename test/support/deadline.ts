/** Waits that end: each has a limit and says what it was waiting for. */
export { eventually } from '../../bench/waiting.mjs'

/** The promise's value, or an error naming `label` when it takes longer than `limitMs`. */
export async function within<T>(promise: Promise<T>, label: string, limitMs = 5000): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`waited ${limitMs} ms for ${label}`)), limitMs)
  })
  try {
    return await Promise.race([promise, late])
  } finally {
    clearTimeout(timer)
  }
}

/** Resolves once `holds` is true, looked at after each turn of the event loop. */
export async function until(holds: () => boolean, label: string, limitMs = 5000): Promise<void> {
  const giveUpAtMs = performance.now() + limitMs
  while (!holds()) {
    if (performance.now() > giveUpAtMs) throw new Error(`waited ${limitMs} ms until ${label}`)
    await new Promise((resolve) => setImmediate(resolve))
  }
}

/** A promise with its ends in hand. */
export function deferred<T = void>(): {
  readonly promise: Promise<T>
  readonly resolve: (value: T) => void
  readonly reject: (error: Error) => void
} {
  let resolve!: (value: T) => void
  let reject!: (error: Error) => void
  const promise = new Promise<T>((onResolve, onReject) => {
    resolve = onResolve
    reject = onReject
  })
  return { promise, resolve, reject }
}
