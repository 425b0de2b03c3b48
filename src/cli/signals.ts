/** Turns the signals of an operator or an orchestrator into reload, drain and stop. */

export interface SignalPorts {
  /** SIGHUP. */
  readonly onReload: () => void
  /** The first SIGTERM or SIGINT: resolves when it is done. */
  readonly onFirst: (signal: string) => Promise<void>
  /** A second one: no more patience. */
  readonly onSecond: () => void
}

const STOPS = ['SIGTERM', 'SIGINT'] as const

/** Resolves when the stop that a signal asked for is done; its listeners go with it. */
export async function onStopSignals(ports: SignalPorts): Promise<void> {
  let stopping = false
  let stop = (_signal: NodeJS.Signals) => {}
  const done = new Promise<void>((resolve, reject) => {
    stop = (signal) => {
      if (stopping) ports.onSecond()
      else ports.onFirst(signal).then(resolve, reject)
      stopping = true
    }
  })
  for (const signal of STOPS) process.on(signal, stop)
  process.on('SIGHUP', ports.onReload)
  try {
    await done
  } finally {
    for (const signal of STOPS) process.off(signal, stop)
    process.off('SIGHUP', ports.onReload)
  }
}
