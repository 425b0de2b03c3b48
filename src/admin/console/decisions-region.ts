/** The list of decisions: each with its why in a sentence, how it ended, and the numbers behind it to unfold. */
import { html } from 'hono/html'
import type { CandidateView } from '../../core/records.ts'
import type { Ms } from '../../core/units.ts'
import type { DecisionFigures } from '../overview/decisions.ts'
import { GATE_WORDS } from '../overview/why.ts'
import { NOTHING, shownClock, shownCount, shownMs, shownPercent } from '../words.ts'
import { type Html, sign, type Tone, table } from './marks.ts'

export function decisionsRegion(decisions: readonly DecisionFigures[] | null, unixOriginMs: Ms): Html {
  if (decisions === null) return SIGN_IN
  if (decisions.length === 0) return html`<p class="empty">None of that kind is held.</p>`
  return html`<ol class="decisions">${decisions.map((decision) => item(decision, unixOriginMs))}</ol>`
}

/** The most promising ones; /decisions has more. */
const CANDIDATES_DRAWN = 4

const SIGN_IN = html`<form class="sign-in" method="post" action="/-/session">
<p>Decisions are for those who have the admin token. It is <code>admin.token</code> in the file; this page keeps no copy of it.</p>
<label>Admin token <input type="password" name="token" autocomplete="off" required></label> <button>Show decisions</button></form>`

function item(decision: DecisionFigures, unixOriginMs: Ms): Html {
  const { requestId, atMs, why, end, wouldHave, model, class: className, tenant } = decision
  const unixMs = atMs + unixOriginMs
  return html`<li id="d-${requestId}"><p class="what"><time datetime="${new Date(unixMs).toISOString()}">${shownClock(unixMs)}</time>
${sign(...toneOf(decision))} <b>${className}</b> <span class="soft">on ${model}, ${tenant}</span></p>
<p class="why">${why}${end === undefined ? '' : html` <span class="soft">${end}</span>`}${wouldHave === undefined ? '' : html` <em>${wouldHave}</em>`}</p>
<details><summary>Numbers</summary>${numbers(decision)}</details></li>`
}

function toneOf({ decision, verdict }: DecisionFigures): readonly [Tone, string] {
  if (decision === 'shed') return ['bad', 'refused']
  if (decision === 'left') return ['unknown', 'left']
  if (decision === 'running') return ['unknown', 'running']
  const tone = { good: 'ok', bad: 'warn', excluded: 'unknown' } as const
  const word = verdict === 'bad' ? `${decision}, missed` : decision
  return [verdict === undefined ? 'unknown' : tone[verdict], word]
}

function numbers({
  requestId,
  promptTokens,
  waitedMs,
  targetTtftMs,
  predictedTtftMs,
  realTtftMs,
  candidates,
}: DecisionFigures): Html {
  const facts: readonly (readonly [string, string])[] = [
    ['Request', requestId],
    ['Prompt', `${shownCount(promptTokens)} tokens`],
    ['Waited', shownMs(waitedMs)],
    ['TTFT promised', shownMs(targetTtftMs)],
    ['predicted', shownMs(predictedTtftMs)],
    ['real', shownMs(realTtftMs)],
  ]
  return html`<dl>${facts.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>
${table(`Replicas seen for ${requestId}`, CANDIDATE_HEAD, candidates.slice(0, CANDIDATES_DRAWN).map(candidateRow), 'No replica was looked at.')}`
}

const CANDIDATE_HEAD = html`<th scope="col">Replica</th><th scope="col" class="n">TTFT predicted</th><th scope="col" class="n">with margin</th>
<th scope="col" class="n">Uncached tokens</th><th scope="col" class="n">Backlog</th><th scope="col" class="n">Running</th>
<th scope="col" class="n">KV peak</th><th scope="col" class="n">Bearable stall</th><th scope="col" class="n">Step</th><th scope="col">Gate</th>`

function candidateRow(view: CandidateView): Html {
  const gate = view.gate === 'ok' ? 'open' : `${view.gate}: ${GATE_WORDS[view.gate]}`
  return html`<tr><th scope="row">${view.replicaId}</th><td class="n">${shownMs(view.predictedTtftMs)}</td><td class="n">${shownMs(view.boundTtftMs)}</td>
<td class="n">${shownCount(view.uncachedTokens)}</td><td class="n">${shownCount(view.backlogTokens)}</td><td class="n">${view.runningSequences}</td>
<td class="n">${shownPercent(view.kvPeakRatio)}</td><td class="n">${view.bearableStallMs === undefined ? NOTHING : shownMs(view.bearableStallMs)}</td>
<td class="n">${shownMs(view.decodeStepMs)}</td><td>${gate}</td></tr>`
}
