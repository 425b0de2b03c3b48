/** The whole of a moment, as values. */
import { describe, expect, it } from 'vitest'
import { overview } from '../../../src/admin/overview/overview.ts'
import { offerOf, settlementOf } from '../../slo/facts.ts'
import { agent, batch, chat, decisionOf, good, replicaOf, shed } from '../../telemetry/rig.ts'
import { setUp } from '../admin-rig.ts'

describe('the overview', () => {
  it('puts the most troubled promise first, and what promises nothing last', () => {
    const { ports, observer } = setUp()
    for (let index = 0; index < 50; index++) {
      observer.onSettled(settlementOf({ offer: offerOf(batch) }))
      observer.onSettled(settlementOf({ offer: offerOf(agent), ttftMs: 100 }))
      observer.onSettled(index < 40 ? good() : shed())
    }
    const { promises, headline } = overview(ports, false)
    expect(promises.map(({ class: name, state }) => [name, state])).toEqual([
      ['chat', 'critical'],
      ['agent', 'ok'],
      ['batch', 'unknown'],
    ])
    expect(headline).toBe('chat is spending its error budget 20× too fast.')
    expect(promises[0]?.budgetRemainingRatio).toBeCloseTo(-19)
    expect(promises[0]?.ttft).toMatchObject({ targetMs: 450 })
    expect(promises[2]?.objectiveRatio).toBeUndefined()
  })

  it('says how it stands without trouble, without traffic, and when it is not ready', () => {
    const { ports, observer, parts } = setUp()
    expect(overview(ports, false).headline).toBe('Too few requests yet to judge a promise.')
    for (let index = 0; index < 50; index++) observer.onSettled(good())
    expect(overview(ports, false).headline).toBe('Every promise is being kept.')
    parts.replicas = []
    expect(overview(ports, false)).toMatchObject({
      ready: false,
      headline: expect.stringContaining('Not ready: '),
    })
  })

  it('tells lateness from refusals in the totals', () => {
    const { ports, observer, clock } = setUp()
    observer.onSettled(good())
    observer.onSettled(shed())
    clock.nowMs = 10_000
    expect(overview(ports, false).total).toEqual({
      judgedPerSec: 0.2,
      goodPerSec: 0.1,
      attainmentRatio: 0.5,
      admittedAttainmentRatio: 1,
      unservedRatio: 0.5,
    })
  })

  it('shows of a replica its books, gauges, the least trust of its models, and predicted beside real TTFT', () => {
    const { ports, observer, parts, clock } = setUp()
    const id = replicaOf().id
    parts.replicas = [
      replicaOf({
        models: ['m', 'n'],
        gauges: { seenAtMs: 500, runningRequests: 2, waitingRequests: 1, kvUsageRatio: 0.4 },
      }),
    ]
    parts.trust = [
      { model: 'm', state: 'trusted' },
      { model: 'n', state: 'fallback' },
    ]
    observer.onSettled({ ...good(), replicaId: id, predictedTtftMs: 250 })
    clock.nowMs = 2500
    const { replicas } = overview(ports, false)
    expect(replicas).toMatchObject([
      {
        name: 'r1',
        inFlightRequests: 3,
        backlogTokens: 700,
        kvUsageRatio: 0.4,
        engineWaitingRequests: 1,
        scrapeAgeMs: 2000,
        trust: 'fallback',
        ttft: { samples: 1, predictedMs: 250, realMs: 300 },
      },
    ])
    expect(JSON.stringify(replicas)).not.toContain('10.0.0.1')
  })

  it('tells what happened, the newest first', () => {
    const { ports, observer, clock } = setUp()
    const { catalog } = observer.attainment
    observer.onReplicaState('r1', undefined, 'live')
    clock.nowMs = 10
    observer.onReplicaState('r1', 'live', 'down')
    observer.onReloadFailed()
    const changes = ['a: 1 → 2', 'b: +', 'c: -', 'd: 1 → 2']
    observer.onLoaded({ catalog, digest: 'abc', mode: 'shadow' }, { changes })
    observer.onEvent('draining', {})
    observer.onEvent('stopped')
    expect(overview(ports, false).events).toEqual([
      { atMs: 10, kind: 'life', trouble: false, text: 'Shutting down: nothing new is taken.' },
      {
        atMs: 10,
        kind: 'configuration',
        trouble: false,
        text: 'Configuration abc in force: a: 1 → 2; b: +; c: -; and 1 more.',
      },
      {
        atMs: 10,
        kind: 'configuration',
        trouble: true,
        text: 'Reload refused: the file has problems, named in the log. The old configuration goes on.',
      },
      { atMs: 10, kind: 'replica', trouble: true, text: 'r1 is down, after live.' },
      { atMs: 0, kind: 'replica', trouble: false, text: 'r1 joined, live.' },
    ])
  })

  it('remembers a bounded number of events', () => {
    const { ports, observer } = setUp()
    for (let index = 0; index < 500; index++) observer.onReplicaState(`r${index}`, 'live', 'down')
    expect(observer.journal.last(1000)).toHaveLength(200)
    expect(overview(ports, false).events[0]?.text).toBe('r499 is down, after live.')
  })

  it('keeps decisions from who may not see them, and calls replicas by name', () => {
    const { ports, observer, parts } = setUp()
    parts.replicas = [replicaOf({ id: 'r1', name: 'left-rack' })]
    observer.onDecision(decisionOf(offerOf(chat)))
    expect(overview(ports, false).decisions).toBeNull()
    const [decision] = overview(ports, true).decisions ?? []
    expect(decision).toMatchObject({ requestId: 'r1', decision: 'running', targetTtftMs: 450 })
    expect(decision?.why).toContain('left-rack')
    expect(decision?.candidates[0]?.replicaId).toBe('left-rack')
  })

  it('says what waits by class', () => {
    const waiting = [{ class: 'agent', requests: 2, tokens: 900, oldestMs: 1500 }]
    const { ports } = setUp({ waitingByClass: () => waiting })
    expect(overview(ports, false).waiting).toEqual({ requests: 2, tokens: 900, classes: waiting })
  })
})
