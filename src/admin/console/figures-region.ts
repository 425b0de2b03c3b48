/** The headline and the few numbers that tell most. */
import { html } from 'hono/html'
import type { Overview } from '../overview/overview.ts'
import { counted, NOTHING, shownAttainment, shownCount, shownRate } from '../words.ts'
import type { Html } from './marks.ts'

export function figuresRegion({ headline, total, waiting, replicas, promises }: Overview): Html {
  const live = replicas.filter(({ state }) => state === 'live' || state === 'ramping').length
  const judged = total.attainmentRatio !== undefined
  const worst = promises.find(({ state }) => state === 'critical' || state === 'burning')
  const oldest = Math.max(0, ...waiting.classes.map(({ oldestMs }) => oldestMs))
  return html`<p class="headline${worst === undefined ? '' : ` ${worst.state}`}" id="headline">${headline}</p>
<dl class="figures">
${figure('Attainment, 5 min', shownAttainment(total.attainmentRatio), judged ? `${shownAttainment(total.admittedAttainmentRatio)} of those let in` : 'nothing judged yet')}
${figure('Goodput', html`${shownRate(total.goodPerSec)}<small>/s</small>`, `of ${shownRate(total.judgedPerSec)}/s offered`)}
${figure('Not served', total.unservedRatio === undefined ? NOTHING : shownAttainment(total.unservedRatio), 'refused, or left while waiting')}
${figure('Waiting', shownCount(waiting.requests), waiting.requests === 0 ? 'nobody' : `${shownCount(waiting.tokens)} tokens, oldest ${(oldest / 1000).toFixed(1)}\u00a0s`)}
${figure(
  'Replicas',
  html`${live}<small> of ${replicas.length}</small>`,
  `${counted(
    replicas.reduce((sum, { inFlightRequests }) => sum + inFlightRequests, 0),
    'request',
  )} in flight`,
)}
</dl>`
}

function figure(name: string, value: string | Html, beside: string): Html {
  return html`<div><dt>${name}</dt><dd><b>${value}</b><span>${beside}</span></dd></div>`
}
