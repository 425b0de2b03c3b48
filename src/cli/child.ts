/** The life of a child of `serve`: takes orders over its channel, shows that it lives, and ends with its supervisor. */
import type { Config } from '../config/config.ts'
import { CHILD_BEAT_MS } from '../workers/keeper.ts'
import type { ChildReport, Order, Setup } from '../workers/orders.ts'

/** What a started child can be ordered to do. */
export interface ChildDuties {
  /** Rejects when what is still to be opened can't be. */
  readonly serving?: Promise<void>
  goTo?(place: Extract<Order<Config>, { kind: 'decider' }>['place']): void
  configure?(config: Config): void
  reload?(cause: 'signal' | 'watch'): void
  drain(signal: string): void | Promise<void>
  hurry?(): void
  /** Ends everything; the child exits when it resolves. */
  stop(): Promise<void>
}

/** Told to the supervisor, when it still listens. */
export function report(told: ChildReport<Config>): void {
  if (process.connected) process.send?.(told, undefined, undefined, () => {})
}

/** Starts as the first order says and then obeys. Signals are the supervisor's: it hears them too, and decides. */
export function serveOrders(start: (setup: Setup<Config>) => Promise<ChildDuties>): void {
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => {})
  process.once('disconnect', () => process.exit(1))
  setInterval(() => report({ kind: 'beat' }), CHILD_BEAT_MS).unref()
  let duties: Promise<ChildDuties> | undefined
  process.on('message', (order: Order<Config>) => {
    if (order.kind === 'start') {
      duties = start(order.setup)
      duties.then(({ serving }) => serving).catch(fail)
    } else duties?.then((able) => obey(able, order)).catch(fail)
  })
  report({ kind: 'awake' })
}

async function obey(able: ChildDuties, order: Exclude<Order<Config>, { kind: 'start' }>): Promise<void> {
  switch (order.kind) {
    case 'decider':
      able.goTo?.(order.place)
      break
    case 'configured':
      able.configure?.(order.config)
      break
    case 'reload':
      able.reload?.(order.cause)
      break
    case 'drain':
      await able.drain(order.signal)
      break
    case 'hurry':
      able.hurry?.()
      break
    case 'stop':
      await able.stop()
      process.exit(0)
      break
    default:
      order satisfies never
  }
}

function fail(error: unknown): void {
  const message = error instanceof Error ? error.message : String(error)
  const told: ChildReport<Config> = { kind: 'failed', message }
  if (process.send === undefined) process.exit(1)
  process.send(told, undefined, undefined, () => process.exit(1))
}
