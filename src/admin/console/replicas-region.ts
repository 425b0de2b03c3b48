/** The table of replicas: what each is doing and how well it is predicted. */
import { html } from 'hono/html'
import type { ReplicaFigures } from '../overview/replicas.ts'
import { NOTHING, shownCount, shownMs, shownPercent, shownSpan } from '../words.ts'
import { bar, type Html, sign, type Tone, table } from './marks.ts'

const STATE_TONES: Readonly<Record<ReplicaFigures['state'], Tone>> = {
  live: 'ok',
  ramping: 'warn',
  draining: 'warn',
  suspect: 'bad',
  down: 'bad',
}
const TRUST_SIGNS: Readonly<Record<NonNullable<ReplicaFigures['trust']>, readonly [Tone, string]>> = {
  trusted: ['ok', 'trusted'],
  cautious: ['warn', 'cautious'],
  fallback: ['unknown', 'not yet'],
}
/** Older gauges are pointed at, in ms. */
const STALE_MS = 5000
/** KV memory fuller than this is pointed at. */
const KV_FULL_RATIO = 0.9

const HEAD = html`<th scope="col">Replica</th><th scope="col">State</th><th scope="col" class="n">In flight</th>
<th scope="col">Backlog, tokens</th><th scope="col">KV memory</th><th scope="col" class="n">Waits in engine</th>
<th scope="col">Trust</th><th scope="col">TTFT predicted → real</th><th scope="col" class="n">Gauges read</th>`

export function replicasRegion(replicas: readonly ReplicaFigures[]): Html {
  const most = {
    backlogTokens: Math.max(1, ...replicas.map(({ backlogTokens }) => backlogTokens)),
    ttftMs: Math.max(1, ...replicas.map(({ ttft }) => Math.max(ttft?.predictedMs ?? 0, ttft?.realMs ?? 0))),
  }
  return table(
    'What each replica is doing',
    HEAD,
    replicas.map((replica) => row(replica, most)),
    'No replica.',
  )
}

interface Most {
  readonly backlogTokens: number
  readonly ttftMs: number
}

function row(replica: ReplicaFigures, most: Most): Html {
  const { name, models, state, backlogTokens, kvUsageRatio, scrapeAgeMs } = replica
  const full = kvUsageRatio !== undefined && kvUsageRatio > KV_FULL_RATIO
  const age =
    scrapeAgeMs === undefined ? NOTHING : scrapeAgeMs < 1500 ? 'just now' : `${shownSpan(scrapeAgeMs)} ago`
  return html`<tr id="r-${name}"><th scope="row">${name}<span class="soft under">${models.join(', ')}</span></th>
<td>${sign(STATE_TONES[state], state)}</td>
<td class="n">${replica.inFlightRequests}<span class="soft under">${replica.prefillingRequests} prefill, ${replica.decodingSequences} decode</span></td>
<td><span class="metered">${bar(backlogTokens / most.backlogTokens)}<span>${shownCount(backlogTokens)}</span></span></td>
<td><span class="metered">${bar(kvUsageRatio, full ? 'warn' : 'plain')}<span>${shownPercent(kvUsageRatio)}</span></span></td>
<td class="n">${shownCount(replica.engineWaitingRequests)}</td><td>${trustCell(replica)}</td><td>${ttftCell(replica, most)}</td>
<td class="n${(scrapeAgeMs ?? 0) > STALE_MS ? ' short' : ' soft'}">${age}</td></tr>`
}

function trustCell({ trust }: ReplicaFigures): Html {
  return trust === undefined ? html`<span class="soft">${NOTHING}</span>` : sign(...TRUST_SIGNS[trust])
}

/** A hollow ring for the prediction and a dot for what came, on one scale for all replicas. */
function ttftCell({ ttft }: ReplicaFigures, most: Most): Html {
  if (ttft === undefined) return html`<span class="soft">${NOTHING}</span>`
  const at = (ms: number) => Math.round((ms / most.ttftMs) * 900) / 10 + 5
  const [predicted, real] = [at(ttft.predictedMs), at(ttft.realMs)]
  const gap = html`<rect x="${Math.min(predicted, real)}%" width="${Math.abs(real - predicted).toFixed(1)}%"/>`
  return html`<span class="metered"><svg class="dumbbell" aria-hidden="true">${gap}<circle class="predicted" cx="${predicted}%"/><circle cx="${real}%"/></svg><span>${shownMs(ttft.predictedMs)} → ${shownMs(ttft.realMs)}<span class="soft under">medians of ${ttft.samples}</span></span></span>`
}
