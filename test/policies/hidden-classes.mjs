/** Decides as many requests as its argument says: run by `hidden-classes.test.ts` under V8's log of hidden classes. */
import { createGate } from '../../dist/core/gate.js'
import { createSluice } from '../../dist/policies/sluice.js'
import { judge } from '../../dist/slo/judge.js'

const slo = { name: 'chat', ttftMs: 500, tpotMs: 50, maxWaitMs: 1000, weight: 1, overload: 'shed' }
const waiting = { requests: 100, bytes: 1e6, tokens: 1e6 }
const settings = { waiting, rerouteBudgetRatio: 0.1, instances: 1, tenants: {}, configDigest: 'test' }
const limits = { maxNumSeqs: 16, maxNumBatchedTokens: 2048, kvCapacityTokens: 100_000 }
const replica = { pools: ['m'], groupId: 'g', state: 'live', limits, generation: 0 }
const request = {
  ...{ pool: 'm', kind: 'generate', route: 'chat', tenant: 't', product: 'none', slo, promptTokens: 500 },
  ...{ promptTokensExact: false, sequences: 1, prefixHashes: [], prefixBlockTokens: 256, bodyBytes: 2000 },
  ...{ streamed: true, retryCount: 0 },
}

const gate = createGate({ settings, scheduler: createSluice(), judge })
for (const replicaId of ['r1', 'r2'])
  gate.handle({ kind: 'replicaChanged', replica: { replicaId, ...replica } }, 0)

function serve(nth) {
  const receivedAtMs = nth * 100.5
  const offer = { requestId: `q${nth}`, receivedAtMs, ...request }
  for (const { kind, permitId } of gate.handle({ kind: 'offer', offer }, receivedAtMs)) {
    if (kind !== 'dispatch') continue
    const firstTokenAtMs = receivedAtMs + 20.5
    const endedAtMs = firstTokenAtMs + 10.25
    gate.handle({ kind: 'firstToken', permitId }, firstTokenAtMs)
    gate.handle({ kind: 'progress', permitIds: [permitId], contentEvents: [1] }, endedAtMs)
    const usage = { promptTokens: 500, outputTokens: 2 }
    const times = { endedAtMs, firstTokenAtMs, lastTokenAtMs: endedAtMs }
    const report = { outcome: 'completed', contentEvents: 2, usage, ...times }
    gate.handle({ kind: 'settle', permitId, report }, endedAtMs)
  }
}

const requests = Number(process.argv[2])
for (let nth = 1; nth <= requests; nth++) serve(nth)
if (gate.counts.settled !== requests) throw new Error(`${gate.counts.settled} of ${requests} settled`)
