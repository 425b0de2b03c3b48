/** Moore and Hodgson's rule: as many jobs in time as any choice could have, none late, and no slot booked twice. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { leastSlackFirst } from '../../src/policies/ordering/least-slack.ts'
import { type JobPlan, mooreHodgson, type PlanJob } from '../../src/policies/ordering/moore-hodgson.ts'
import { place, type VirtualStart, virtualReplica } from '../../src/policies/ordering/virtual-replica.ts'

interface Task {
  readonly id: number
  readonly prefillMs: number
  readonly deadlineAtMs: number
  readonly residenceMs: number
  readonly sequences: number
  readonly value: number
}

const TASK = {
  prefillMs: fc.integer({ min: 1, max: 40 }),
  deadlineAtMs: fc.integer({ min: 1, max: 150 }),
  residenceMs: fc.integer({ min: 0, max: 200 }),
  sequences: fc.integer({ min: 1, max: 3 }),
  value: fc.integer({ min: 1, max: 9 }),
}
const byDeadline = (rows: readonly Omit<Task, 'id'>[]): Task[] =>
  rows.map((row, id) => ({ id, ...row })).toSorted((a, b) => a.deadlineAtMs - b.deadlineAtMs)
const tasks = fc.array(fc.record(TASK), { maxLength: 8 }).map(byDeadline)
/** So many for the time there is that some have to go. */
const crowd = fc
  .array(
    fc.record({
      ...TASK,
      prefillMs: fc.integer({ min: 10, max: 40 }),
      deadlineAtMs: fc.integer({ min: 40, max: 90 }),
    }),
    { minLength: 5, maxLength: 7 },
  )
  .map(byDeadline)

const worth = (row: Task) => row.value

const alike = (rows: readonly Task[]) => rows.map((row) => ({ ...row, prefillMs: 20 }))

/** The same values, the largest for the cheapest. */
function agreeing(rows: readonly Task[]): Task[] {
  const byCost = rows.toSorted((a, b) => a.prefillMs - b.prefillMs)
  const values = rows.map(worth).toSorted((a, b) => b - a)
  return rows.map((row) => ({ ...row, value: values[byCost.indexOf(row)] ?? 1 }))
}

/** All of the same value unless told. */
function jobs(rows: readonly Task[], machines: number, worthOf = (_: Task) => 1): PlanJob<Task>[] {
  return rows.map((row) => ({
    job: row,
    deadlineAtMs: row.deadlineAtMs,
    value: worthOf(row),
    options: Array.from({ length: machines }, (_, replica) => ({
      ...row,
      replica,
      latencyMs: 0,
      pauseMs: 0,
    })),
  }))
}

const FREE: VirtualStart = { prefillFreeAtMs: 0, slotsFreeAtMs: undefined }

/** The most value that can be in time on one machine, each choice tried in order of deadline. */
function mostValue(rows: readonly Task[], worthOf = (_: Task) => 1): number {
  let best = 0
  for (let mask = 0; mask < 1 << rows.length; mask++) {
    let endMs = 0
    let inTime = true
    let value = 0
    rows.forEach((row, index) => {
      if (((mask >> index) & 1) === 0) return
      endMs += row.prefillMs
      value += worthOf(row)
      if (endMs > row.deadlineAtMs) inTime = false
    })
    if (inTime) best = Math.max(best, value)
  }
  return best
}

/** Replays what was kept, machine by machine, and says when each first token would come. */
function replayed(plan: JobPlan<Task>, starts: readonly VirtualStart[]): Map<number, number> {
  const machines = starts.map(virtualReplica)
  const atMs = new Map<number, number>()
  for (const { job, replica } of plan.kept) {
    const machine = machines[replica]
    if (machine === undefined) throw new Error(`no machine ${replica}`)
    atMs.set(job.id, place(machine, { ...job, latencyMs: 0, pauseMs: 0 }))
  }
  return atMs
}

const SLOTS: VirtualStart = { prefillFreeAtMs: 5, slotsFreeAtMs: [0, 0, 30] }
const FLEETS = [
  ['one machine', [FREE]],
  ['two machines', [FREE, FREE]],
  ['machines with slots', [SLOTS, { prefillFreeAtMs: 0, slotsFreeAtMs: [10] }]],
] as const

describe('Moore and Hodgson’s rule', () => {
  it('I28 keeps as many jobs in time on one machine as brute force', () => {
    fc.assert(
      fc.property(tasks, (rows) => {
        expect(mooreHodgson(jobs(rows, 1), [FREE]).kept.length).toBe(mostValue(rows))
      }),
      { numRuns: 300 },
    )
  })

  it.each(FLEETS)('I28 keeps nobody who would be late on %s, in the order given', (_, starts) => {
    fc.assert(
      fc.property(tasks, (rows) => {
        const plan = mooreHodgson(jobs(rows, starts.length), starts)
        const atMs = replayed(plan, starts)
        for (const { job, firstTokenAtMs } of plan.kept) {
          expect(firstTokenAtMs).toBe(atMs.get(job.id))
          expect(firstTokenAtMs).toBeLessThanOrEqual(job.deadlineAtMs)
        }
        const order = plan.kept.map(({ job }) => rows.indexOf(job))
        expect(order).toEqual(order.toSorted((a, b) => a - b))
        expect(plan.kept.length + plan.dropped.length).toBe(rows.length)
      }),
      { numRuns: 150 },
    )
  })

  it('I28 is never worse on several machines than giving up whoever is late', () => {
    fc.assert(
      fc.property(tasks, (rows) => {
        const starts = [FREE, FREE]
        const machines = starts.map(virtualReplica)
        let inTime = 0
        for (const row of rows) {
          const [a, b] = machines
          const machine = (a?.prefillFreeAtMs ?? 0) <= (b?.prefillFreeAtMs ?? 0) ? a : b
          if (machine !== undefined && machine.prefillFreeAtMs + row.prefillMs <= row.deadlineAtMs) {
            machine.prefillFreeAtMs += row.prefillMs
            inTime++
          }
        }
        expect(mooreHodgson(jobs(rows, 2), starts).kept.length).toBeGreaterThanOrEqual(inTime)
      }),
      { numRuns: 200 },
    )
  })

  it('I28 never books a slot twice', () => {
    fc.assert(
      fc.property(tasks, fc.integer({ min: 1, max: 4 }), (rows, slots) => {
        const start = { prefillFreeAtMs: 0, slotsFreeAtMs: new Array<number>(slots).fill(0) }
        const generous = rows.map((row) => ({ ...row, deadlineAtMs: 1e9 }))
        const plan = mooreHodgson(jobs(generous, 1), [start])
        const spans = plan.kept.map(({ job, firstTokenAtMs }) => ({
          fromMs: firstTokenAtMs - job.prefillMs,
          toMs: firstTokenAtMs + job.residenceMs,
          slots: Math.min(slots, job.sequences),
        }))
        for (const { fromMs } of spans) {
          const used = spans
            .filter((span) => span.fromMs <= fromMs && span.toMs > fromMs)
            .reduce((sum, span) => sum + span.slots, 0)
          expect(used).toBeLessThanOrEqual(slots)
        }
        expect(start.slotsFreeAtMs).toEqual(new Array<number>(slots).fill(0))
      }),
      { numRuns: 150 },
    )
  })

  it('gives up the costliest for its worth', () => {
    const rows = [
      { id: 0, prefillMs: 60, deadlineAtMs: 100, residenceMs: 0, sequences: 1, value: 4 },
      { id: 1, prefillMs: 50, deadlineAtMs: 101, residenceMs: 0, sequences: 1, value: 1 },
    ]
    expect(mooreHodgson(jobs(rows, 1, worth), [FREE]).dropped.map(({ job }) => job.id)).toEqual([1])
    expect(mooreHodgson(jobs(rows, 1), [FREE]).dropped.map(({ job }) => job.id)).toEqual([0])
  })

  it('leaves alone what may go nowhere', () => {
    const [one] = jobs([{ id: 0, prefillMs: 1, deadlineAtMs: 9, residenceMs: 0, sequences: 1, value: 1 }], 1)
    if (one === undefined) throw new Error('no job')
    expect(mooreHodgson([{ ...one, options: [] }], [FREE])).toEqual({ kept: [], dropped: [] })
  })
})

describe('Moore and Hodgson’s rule among jobs of unlike value', () => {
  it.each(FLEETS)('goes by how values stand to each other and not by their scale, on %s', (_, starts) => {
    let telling = 0
    fc.assert(
      // Powers of two, so that nothing is rounded otherwise.
      fc.property(crowd, fc.integer({ min: -20, max: 20 }), (rows, power) => {
        const plan = mooreHodgson(jobs(rows, starts.length, worth), starts)
        const scaled = (row: Task) => worth(row) * 2 ** power
        expect(mooreHodgson(jobs(rows, starts.length, scaled), starts)).toEqual(plan)
        const unvalued = mooreHodgson(jobs(rows, starts.length), starts)
        if (JSON.stringify(plan) !== JSON.stringify(unvalued)) telling++
      }),
      { numRuns: 150, seed: 5 },
    )
    expect(telling).toBeGreaterThan(15)
  })

  it.each(FLEETS)('keeps the same when one of them is worth more, on %s', (_, starts) => {
    fc.assert(
      fc.property(crowd, fc.integer({ min: 2, max: 100 }), (rows, times) => {
        const plan = mooreHodgson(jobs(rows, starts.length, worth), starts)
        for (const { job } of plan.kept) {
          const raised = (row: Task) => (row === job ? times * worth(row) : worth(row))
          expect(mooreHodgson(jobs(rows, starts.length, raised), starts)).toEqual(plan)
        }
      }),
      { numRuns: 150 },
    )
  })

  // Lawler 1976: the rule is exact where no job that costs more is worth more; elsewhere it is a heuristic.
  it.each([
    ['all cost the same', alike],
    ['the dearer are worth no more', agreeing],
  ])('keeps as much value on one machine as brute force where %s', (_, made) => {
    fc.assert(
      fc.property(crowd.map(made), (rows) => {
        const { kept } = mooreHodgson(jobs(rows, 1, worth), [FREE])
        const value = kept.reduce((sum, { job }) => sum + worth(job), 0)
        expect(value).toBe(mostValue(rows, worth))
      }),
      { numRuns: 300 },
    )
  })
})

describe('least slack first', () => {
  it('sorts a copy by the latest start, then by arrival', () => {
    const rows = [
      { startByAtMs: 5, enteredAtMs: 2 },
      { startByAtMs: -1, enteredAtMs: 3 },
      { startByAtMs: 5, enteredAtMs: 1 },
    ]
    const sorted = leastSlackFirst(rows)
    expect(sorted.map(({ enteredAtMs }) => enteredAtMs)).toEqual([3, 1, 2])
    expect(rows[0]?.enteredAtMs).toBe(2)
  })

  it('lets a pause delay whoever comes next, and not the first token before it', () => {
    const work = { prefillMs: 10, pauseMs: 30, residenceMs: 0, sequences: 1, latencyMs: 2 }
    const replica = virtualReplica(FREE)
    expect(place(replica, work)).toBe(12)
    expect(place(replica, work)).toBe(52)
  })
})
