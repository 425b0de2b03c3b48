/** Laws of workers and deciders that die, cut off and come back at any moment: one answer, one count, nothing kept. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { WorkersWorld } from './workers-world.ts'

type Step = readonly [what: string, at: number, count: number]

const steps = (...whats: readonly string[]): fc.Arbitrary<readonly Step[]> =>
  fc.array(fc.tuple(fc.constantFrom(...whats), fc.nat({ max: 1 }), fc.integer({ min: 1, max: 4 })), {
    maxLength: 80,
    size: 'max',
  })

const OFFERS = ['offer', 'offer', 'bringUp', 'deliver', 'deliver']
const TRAFFIC = [...OFFERS, 'settle', 'bounce', 'leave', 'firstToken', 'pass']

function run(world: WorkersWorld, [what, at, count]: Step): void {
  const worker = world.workers[at]
  const permitId = worker?.running[count % Math.max(1, worker.running.length)]
  const requestId = worker?.waiting[count % Math.max(1, worker.waiting.length)]
  if (what === 'offer') world.offer(at)
  else if (what === 'deliver') world.deliver(at, count)
  else if (what === 'bringUp') world.bringUp(at)
  else if (what === 'settle' && permitId !== undefined) worker?.settle(permitId)
  else if (what === 'bounce' && permitId !== undefined) worker?.bounce(permitId)
  else if (what === 'leave' && requestId !== undefined) worker?.leave(requestId)
  else if (what === 'firstToken' && permitId !== undefined) worker?.tell({ kind: 'firstToken', permitId })
  else if (what === 'pass') world.clock.advance(count * 100)
  else if (what === 'kill') world.kill(at)
  else if (what === 'cut') world.cut(at)
  else if (what === 'connect') world.connect(at)
  else if (what === 'killDecider') world.killDecider()
}

function played(script: readonly Step[]): WorkersWorld {
  const world = new WorkersWorld(2)
  for (const step of script) run(world, step)
  world.finish()
  return world
}

function nothingIsKept(world: WorkersWorld): void {
  expect(world.faults).toEqual([])
  expect(world.gate.inFlight).toBe(0)
  expect(world.gate.state.waiting.requests).toBe(0)
  expect(world.hub.underWay).toBe(0)
  for (const { open, alone } of world.workers) {
    expect([...open]).toEqual([])
    expect(alone.inFlight).toBe(0)
  }
}

function timesCounted(world: WorkersWorld): ReadonlyMap<string, number> {
  const times = new Map<string, number>()
  for (const { offer } of world.counted) times.set(offer.product, (times.get(offer.product) ?? 0) + 1)
  return times
}

describe('workers and their decider', () => {
  it('count each request that reached the decider once, whichever workers die', () => {
    fc.assert(
      fc.property(steps(...TRAFFIC, 'kill'), (script) => {
        const world = played(script)
        nothingIsKept(world)
        const times = timesCounted(world)
        expect([...times.keys()].sort()).toEqual([...world.offeredThere].sort())
        expect([...times.values()].every((count) => count === 1)).toBe(true)
      }),
    )
  })

  it('answer each request and count none twice, whatever breaks', () => {
    fc.assert(
      fc.property(steps(...TRAFFIC, 'kill', 'cut', 'connect', 'killDecider'), (script) => {
        const world = played(script)
        nothingIsKept(world)
        expect([...timesCounted(world).values()].filter((count) => count !== 1)).toEqual([])
      }),
    )
  })

  it('count as completed what was, and as left what was, though clients use their ids again', () => {
    fc.assert(
      fc.property(steps(...OFFERS, 'leave', 'leave', 'settle'), (script) => {
        const world = played(script)
        const ended = new Map(world.workers.flatMap((worker) => [...worker.ended]))
        // A client may leave when its request is on its way already.
        const left = (outcome?: string) => outcome === 'cancelled' || outcome === 'client_left'
        for (const { offer, outcome } of world.counted)
          expect([outcome, left(outcome)]).toEqual([
            left(outcome) ? outcome : ended.get(offer.product)?.outcome,
            left(ended.get(offer.product)?.outcome),
          ])
      }),
    )
  })

  it('take no answer about one request for that of the next with its id', () => {
    const world = new WorkersWorld(1)
    const [worker] = world.workers
    world.offer(0)
    world.bringUp(0)
    // Its dispatch is on the way when its client leaves, and comes again.
    worker?.leave('same')
    world.offer(0)
    world.bringDown(0)
    expect(worker?.running).toEqual([])
    world.deliver(0, 10)
    expect(worker?.running).toHaveLength(1)
    world.finish()
    expect(world.counted.map(({ offer, outcome }) => [offer.product, outcome])).toEqual([
      ['p1', 'client_left'],
      ['p2', 'completed'],
    ])
    nothingIsKept(world)
  })

  it('serve while nobody decides, and tell the next decider', () => {
    const world = new WorkersWorld(1)
    world.cut(0)
    world.offer(0)
    const [worker] = world.workers
    expect(worker?.running).toHaveLength(1)
    world.finish()
    expect(world.counted.map(({ offer, outcome }) => [offer.product, outcome])).toEqual([['p1', 'completed']])
    expect(worker?.gate.counts).toEqual({ requests: 1, aloneRequests: 1 })
  })

  it('count what a dead worker had begun as ended by us', () => {
    const world = new WorkersWorld(1)
    for (let count = 0; count < 6; count++) world.offer(0)
    world.deliver(0, 20)
    // Two replicas take two each, so two wait.
    expect(world.gate.inFlight).toBe(4)
    world.kill(0)
    expect(world.gate.inFlight).toBe(0)
    world.finish()
    expect(world.counted.map(({ outcome }) => outcome)).toEqual(Array(6).fill('draining'))
    expect(world.counted.every(({ verdict }) => verdict.kind === 'bad')).toBe(true)
  })
})
