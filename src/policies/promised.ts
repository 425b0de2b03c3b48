/** Plans the waiting requests that have a deadline: in which order they go, where, and which of them can be kept. */
import { mayServe } from '../core/eligible.ts'
import type { Ms, Ratio } from '../core/units.ts'
import { readDemands } from './early-shed.ts'
import type { Job } from './job.ts'
import { leastSlackFirst } from './ordering/least-slack.ts'
import { mooreHodgson, type PlanJob, type PlannedOption } from './ordering/moore-hodgson.ts'
import { plannedOption, usableSlots, virtualStart } from './plan-state.ts'
import type { Round } from './round.ts'
import type { StandingPlan } from './standing-plan.ts'
import { keepingOf, replicaChoice } from './wide.ts'

/** Part of the time to its deadline that a plan may use up for a request; the rest covers what predictions miss. */
const TTFT_USE_RATIO = 0.9
/** A request whose tenant or class has had so much too little, in times of its weight, is ordered as if by this part. */
const HASTY_WORTH = 10
const HASTY_USE_RATIO = 0.5

/** Orders what has a deadline and finds out what can be kept. */
export function planPromised(
  round: Round,
  jobs: readonly Job[],
): Pick<StandingPlan, 'plan' | 'demands' | 'starts' | 'choice'> {
  const { views, learnt, nowMs, tightestTpotMs } = round
  const withDeadline = jobs.flatMap((job) =>
    job.deadlineAtMs === undefined ? [] : [{ job, deadlineAtMs: job.deadlineAtMs }],
  )
  const choice = replicaChoice(views)
  if (withDeadline.length === 0)
    return { plan: { kept: [], dropped: [] }, demands: new Map(), starts: [], choice }
  const waitingSequences = withDeadline.reduce((sum, { job }) => sum + job.waiter.offer.sequences, 0)
  const { holdingsMs } = keepingOf(views.length)
  const starts = views.map((view) =>
    virtualStart(view, learnt, usableSlots(view, tightestTpotMs), waitingSequences, nowMs, holdingsMs),
  )
  const planned = withDeadline.map(({ job, deadlineAtMs }, nth) =>
    toPlan(round, job, deadlineAtMs, choice(job, nth)),
  )
  const inOrder = leastSlackFirst(planned).map(({ planJob }) => planJob)
  return { plan: mooreHodgson(inOrder, starts), demands: readDemands(round, inOrder, starts), starts, choice }
}

/** What the job would take on each of these replicas, and when it must start at the latest. */
export function toPlan(round: Round, job: Job, deadlineAtMs: Ms, replicas: readonly number[]) {
  const { views, tightestTpotMs, without } = round
  const options: PlannedOption[] = []
  let soonestMs = Number.POSITIVE_INFINITY
  for (const replica of replicas) {
    const view = views[replica]
    if (view === undefined || !mayServe(job.waiter, view.ledger.report)) continue
    const option = plannedOption(job, view, replica, tightestTpotMs)
    options.push(option)
    soonestMs = Math.min(soonestMs, option.prefillMs + option.latencyMs)
  }
  const lateAtMs = without.has('dropping')
    ? Number.POSITIVE_INFINITY
    : partOfTimeAtMs(job, deadlineAtMs, TTFT_USE_RATIO)
  const planJob: PlanJob<Job> = { job, deadlineAtMs: lateAtMs, value: job.value, options }
  const orderAtMs = isHasty(job) ? partOfTimeAtMs(job, deadlineAtMs, HASTY_USE_RATIO) : deadlineAtMs
  const startByAtMs = orderAtMs - (without.has('slack-order') ? 0 : soonestMs)
  return { planJob, startByAtMs, enteredAtMs: job.waiter.enteredAtMs }
}

/** Plans slip, so what must not be refused is not left to its last moment. */
function isHasty({ value, waiter }: Job): boolean {
  return value >= HASTY_WORTH * waiter.offer.slo.weight
}

/** The instant at which that part of the time to its deadline has passed. */
function partOfTimeAtMs({ waiter }: Job, deadlineAtMs: Ms, part: Ratio): Ms {
  const { receivedAtMs } = waiter.offer
  return receivedAtMs + part * (deadlineAtMs - receivedAtMs)
}
