/** The child that decides: gate, fleet, accounts and admin port of a Sluice whose workers relay. */
import type { Config } from '../config/config.ts'
import { systemClock } from '../edge/clock.ts'
import { createLog, type LogLevel } from '../telemetry/log.ts'
import { SHARED_RESOLUTION_MS } from '../telemetry/runtime.ts'
import { Decider } from '../workers/decider.ts'
import type { Setup } from '../workers/orders.ts'
import { ToldTraffic } from '../workers/told-traffic.ts'
import { LOOPBACK } from '../workers/uplink.ts'
import { createAdminSide } from './admin-side.ts'
import { Brain } from './brain.ts'
import { type ChildDuties, report, serveOrders } from './child.ts'
import { listen } from './listen.ts'
import { OTEL_CLOSE_MS, openOtel } from './otel.ts'

/** Workers that have ended are heard out for so long, in ms. */
const HEAR_OUT_MS = 2000

async function start({ config, path, logLevel, token, adminPort }: Setup<Config>): Promise<ChildDuties> {
  const log = createLog({ level: logLevel as LogLevel, nowMs: () => performance.now() })
  const traffic = new ToldTraffic()
  const otel = await openOtel(process.env, log, () => brain)
  const brain: Brain = new Brain(config, log, {
    traffic: (id) => traffic.of(id),
    telemetry: otel,
    lookEveryMs: SHARED_RESOLUTION_MS,
  })
  const { gate, fleet, observer } = brain
  const decider = new Decider({
    ...{ gate, fleet, observer, clock: systemClock, traffic, token },
    headroom: () => observer.weight.headroom,
    onNotice: (event, fields) => observer.onEvent(event, fields),
  })
  brain.attach({
    tell: (event) => decider.tell(event),
    configure: (changed) => report({ kind: 'configured', config: changed }),
    holding: () => decider.holding(),
    workers: () => decider.workers(),
    close: async () => decider.close(),
  })
  let draining = false
  const side = await createAdminSide({ brain, path, log, draining: () => draining })
  const admin = await side.listen(adminPort)
  const linkPort = await listen(decider.server, { host: LOOPBACK, port: 0 }, 'workers')
  report({ kind: 'ready', adminPort: admin, linkPort })
  return {
    reload: (cause) => void side.reload(cause),
    drain(signal) {
      draining = true
      side.stopWatch()
      observer.onEvent('draining', { signal, under_way: decider.underWay })
    },
    async stop() {
      await decider.emptied(HEAR_OUT_MS)
      observer.onEvent('stopped')
      await brain.close()
      await side.close()
      await otel?.close(OTEL_CLOSE_MS)
      log.flush()
    },
  }
}

serveOrders(start)
