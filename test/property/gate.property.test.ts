/** Laws of the gate under any sequence of events, with every scheduler that there is. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createGate } from '../../src/core/gate.ts'
import { schedulers } from '../../src/policies/registry.ts'
import { judge } from '../../src/slo/judge.ts'
import { settingsOf, someOffer } from '../core/core-rig.ts'
import { type Command, carryOut, openWorld, script, warmUp } from './gate-script.ts'
import { GateWorld } from './gate-world.ts'

const RUNS = { numRuns: 20, seed: 11 }
const names = [...schedulers.keys()]

function newScheduler(name: string) {
  const entry = schedulers.get(name)
  if (entry === undefined) throw new Error(`no scheduler ${name}`)
  return entry.create()
}

function play(name: string, commands: readonly Command[], warm: boolean): GateWorld {
  const world = new GateWorld(newScheduler(name))
  openWorld(world)
  if (warm) warmUp(world)
  for (const command of commands) carryOut(world, command)
  return world
}

describe.each(names)('a gate with %s', (name) => {
  it('I15 keeps its books after every event and is empty at the end', () => {
    fc.assert(
      fc.property(script, fc.boolean(), (commands, warm) => {
        const world = play(name, commands, warm)
        world.drain()
        for (const replicaId of [...world.gate.state.replicas.keys()]) {
          world.gone.add(replicaId)
          world.tell({ kind: 'replicaRemoved', replicaId })
        }
        expect(world.gate.state.replicas.size).toBe(0)
      }),
      RUNS,
    )
  })

  it('I16 says the same bytes again when its events are replayed, whatever runs beside it and whoever looks', () => {
    fc.assert(
      fc.property(script, script, fc.boolean(), (commands, others, warm) => {
        const world = play(name, commands, warm)
        const watched = newScheduler(name)
        const again = createGate({ settings: settingsOf(), scheduler: watched, judge })
        const beside = new GateWorld(newScheduler(name))
        openWorld(beside)
        const effects = world.recorded.map(([event, nowMs], index) => {
          const other = others[index]
          if (other !== undefined) carryOut(beside, other)
          watched.snapshot()
          watched.trust('m')
          return JSON.stringify(again.handle(event, nowMs))
        })
        expect(effects).toEqual(world.effectsJson)
      }),
      { ...RUNS, numRuns: 10 },
    )
  })

  it('I17 gives a tenant all its places back', () => {
    fc.assert(
      fc.property(script, (commands) => {
        const world = play(name, commands, false)
        world.drain()
        const tenants = {
          t: { concurrentRequests: 2 },
          u: { concurrentRequests: 2 },
          v: { concurrentRequests: 2 },
        }
        world.tell({ kind: 'configured', settings: settingsOf({ tenants }) })
        for (const tenant of ['t', 'u', 'v']) {
          const refused = [1, 2, 3].map((turn) => {
            const requestId = `end-${tenant}-${turn}`
            const effects = world.tell({
              kind: 'offer',
              offer: someOffer({ requestId, tenant, pool: 'nowhere', slo: WAITS, receivedAtMs: world.nowMs }),
            })
            return effects.some((effect) => effect.kind === 'shed' && effect.reason === 'tenant_limit')
          })
          // The rivals refuse at once what no replica serves, and so give the place back at once.
          if (name === 'sluice') expect(refused, tenant).toEqual([false, false, true])
          else expect(refused, tenant).toEqual([false, false, false])
        }
      }),
      { ...RUNS, numRuns: 10 },
    )
  })
})

const WAITS = { ...someOffer().slo, overload: 'wait', maxWaitMs: 1e6 } as const
