/** How soon an engine, or the waiting room, is rid of a client that has left, in each phase of its request. */
import { eventually } from '../../test/support/deadline.ts'
import type { CrowdWish } from './crowd.ts'
import { delayFigure, type Instants } from './delays.ts'
import type { Figure, Sizes } from './figures.ts'
import { type MemoryStage, staged } from './stage.ts'

interface Phase {
  readonly name: string
  readonly crowd: Omit<CrowdWish, 'count'>
  readonly heartbeatAfter?: string
}

const PHASES: readonly Phase[] = [
  { name: 'in prefill', crowd: { wish: 'role' } },
  { name: 'before any answer', crowd: { wish: 'silent' } },
  { name: "after a heartbeat's 200", crowd: { wish: 'silent', begun: true }, heartbeatAfter: '1s' },
  { name: 'in its stream', crowd: { wish: 'pace', begun: true } },
  { name: 'while it reads nothing', crowd: { wish: 'flood', stalled: true } },
  { name: 'of a whole answer', crowd: { wish: 'silent', stream: false } },
]
const LEAVE_EVERY_MS = 8
const WAIT_MS = 30_000

/** From a client's close to the close of its engine's socket; of one that waits, to its line in the log. */
export async function disconnects({ leavers, readersStall }: Sizes): Promise<Figure[]> {
  const figures: Figure[] = []
  for (const { name, crowd, heartbeatAfter } of PHASES) {
    if (crowd.stalled === true && !readersStall) continue
    const options = heartbeatAfter === undefined ? {} : { heartbeatAfter }
    figures.push(
      await staged(async (stage) => {
        await stage.come({ ...crowd, count: leavers })
        await engineHas(stage, leavers, 'open')
        // What the engine can't send is what Sluice does not read, for its client does not.
        if (crowd.stalled === true) await engineHas(stage, leavers, 'heldUp')
        const left = await leave(stage)
        await engineHas(stage, 0, 'open')
        return delayFigure(name, leavers, left, await stage.engine.ask<Instants>('closed'))
      }, options),
    )
  }
  figures.push(await staged((stage) => waitersLeave(stage, leavers)))
  return figures
}

/** A waiter has no socket at an engine: its line in the log says when it was out of the room. */
async function waitersLeave(stage: MemoryStage, leavers: number): Promise<Figure> {
  // The first has the only slot and leaves last, so that all others wait until they leave.
  await stage.come({ count: 1, wish: 'role', model: 'held' })
  await engineHas(stage, 1, 'open')
  await stage.come({ count: leavers, wish: 'role', model: 'held' })
  const waiting = () => stage.gauge('sluice_waiting_requests')
  await eventually('all but one to wait', WAIT_MS, async () => (await waiting()) === leavers)
  const left = (await leave(stage)).slice(0, leavers)
  await eventually('the room to be empty', WAIT_MS, async () => (await waiting()) === 0)
  const told = () => cancelledIn(stage.sluice.out)
  await eventually(`the log to tell of all ${leavers}`, WAIT_MS, () => {
    const ids = new Set(told().map(([id]) => id))
    return left.every(([id]) => ids.has(id))
  })
  return delayFigure('while it waits', leavers, left, told())
}

function cancelledIn(log: string): Instants {
  return log
    .split('\n')
    .slice(0, -1)
    .filter((line) => line.includes('"cancelled"'))
    .map((line) => JSON.parse(line) as { time: string; request_id: string })
    .map(({ time, request_id: id }) => [id, Date.parse(time)] as const)
}

function leave(stage: MemoryStage): Promise<Instants> {
  return stage.crowd.ask('leave', { everyMs: LEAVE_EVERY_MS })
}

async function engineHas(stage: MemoryStage, count: number, what: 'open' | 'heldUp'): Promise<void> {
  await eventually(
    `the engine to have ${count} exchanges ${what}`,
    WAIT_MS,
    async () => (await stage.engine.ask<number>(what)) === count,
  )
}
