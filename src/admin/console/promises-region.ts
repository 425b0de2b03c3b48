/** The table of promises: how each is kept, what is left of its budget, and how its spans stand to their targets. */
import { html } from 'hono/html'
import { type PromiseFigures, promiseName, type SpanFigures } from '../overview/promises.ts'
import { shownAttainment, shownBudget, shownMs, shownObjective, shownRate, shownTimes } from '../words.ts'
import { bar, type Html, shape, sign, type Tone, table } from './marks.ts'

const TONES: Readonly<Record<PromiseFigures['state'], Tone>> = {
  ok: 'ok',
  burning: 'warn',
  critical: 'bad',
  unknown: 'unknown',
}
const WORDS: Readonly<Record<PromiseFigures['state'], string>> = {
  ok: 'kept',
  burning: 'burning',
  critical: 'critical',
  unknown: 'too few yet',
}

const HEAD = html`<th scope="col">Class</th><th scope="col">State</th><th scope="col" class="n">Objective</th>
<th scope="col" class="n">5 min</th><th scope="col" class="n">1 h</th><th scope="col" class="n">Period</th>
<th scope="col">Budget left</th><th scope="col" class="n">Burn 5 min / 1 h</th><th scope="col" class="n">Good of judged, /s</th>
<th scope="col" class="n">TTFT p50 / p99</th><th scope="col" class="n">TPOT p50 / p99</th>`

export function promisesRegion(promises: readonly PromiseFigures[]): Html {
  return table(
    'How each promise is kept',
    HEAD,
    promises.map((promise) => row(promise, promises)),
    'No request yet.',
  )
}

function row(promise: PromiseFigures, all: readonly PromiseFigures[]): Html {
  const { objectiveRatio, attainment, burn, judgedPerSec, goodPerSec, ttft, tpot } = promise
  const name = html`<th scope="row">${promiseName(promise, all)}</th>`
  const id = `p-${promise.model}-${promise.class}-${promise.product}`
  if (objectiveRatio === undefined) {
    return html`<tr id="${id}">${name}<td class="soft" colspan="8">no targets: served from what others leave</td>${span(ttft)}${span(tpot)}</tr>`
  }
  return html`<tr id="${id}">${name}<td>${stateCell(promise)}</td><td class="n soft">${shownObjective(objectiveRatio)}</td>
${share(attainment['5m'], objectiveRatio)}${share(attainment['1h'], objectiveRatio)}${share(attainment.period, objectiveRatio)}
<td>${budgetCell(promise)}</td><td class="n">${shownTimes(burn['5m'])} / ${shownTimes(burn['1h'])}</td>
<td class="n">${shownRate(goodPerSec)} <span class="soft">of ${shownRate(judgedPerSec)}</span></td>${span(ttft)}${span(tpot)}</tr>`
}

function stateCell({ state, raisedBy }: PromiseFigures): Html {
  const by = raisedBy === undefined ? '' : html` <span class="soft">${raisedBy}</span>`
  return html`${sign(TONES[state], WORDS[state])}${by}`
}

function share(attained: number | undefined, objectiveRatio: number): Html {
  const short = attained !== undefined && attained < objectiveRatio
  return html`<td class="n${short ? ' short' : ''}">${short ? warning('below the objective') : ''}${shownAttainment(attained)}</td>`
}

function budgetCell({ budgetRemainingRatio: left }: PromiseFigures): Html {
  const tone = left === undefined ? 'plain' : left < 0 ? 'bad' : left < 0.25 ? 'warn' : 'ok'
  return html`<span class="metered">${bar(left === undefined ? 0 : left < 0 ? 1 : left, tone)}<span>${shownBudget(left)}</span></span>`
}

/** Percentiles above the target; the p99 is marked when it is later than promised. */
function span({ targetMs, per1kTokensMs, p50Ms, p99Ms }: SpanFigures): Html {
  const late =
    targetMs !== undefined && per1kTokensMs === undefined && p99Ms !== undefined && p99Ms > targetMs
  const grows = per1kTokensMs === undefined ? '' : ` + ${shownMs(per1kTokensMs)}/1k`
  const target =
    targetMs === undefined ? '' : html`<span class="soft under">≤ ${shownMs(targetMs)}${grows}</span>`
  return html`<td class="n${late ? ' short' : ''}">${late ? warning('p99 later than promised') : ''}${shownMs(p50Ms)} / ${shownMs(p99Ms)}${target}</td>`
}

function warning(words: string): Html {
  return html`${shape('warn')}<span class="unseen">${words}: </span>`
}
