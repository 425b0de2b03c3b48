/** The short parts of the page: its state line, the waiting room, what shadow mode would have done, what happened. */
import { html } from 'hono/html'
import type { Ms } from '../../core/units.ts'
import type { ShadowEstimate } from '../../telemetry/shadow-estimate.ts'
import type { EventFigures } from '../overview/events.ts'
import type { ShadowFigures } from '../overview/history.ts'
import type { Overview } from '../overview/overview.ts'
import { promiseName } from '../overview/promises.ts'
import { shownAttainment, shownClock, shownCount, shownMs, shownSpan } from '../words.ts'
import { bar, type Html, sign, table } from './marks.ts'

const MODE_WORDS: Readonly<Record<string, string>> = {
  enforce: 'requests are admitted, held, rerouted and refused',
  shadow: 'nothing is held or refused; what enforcing would have done is recorded',
  off: 'plain routing, nothing is predicted',
}

export function stateRegion({
  mode,
  configDigest,
  version,
  upMs,
  ready,
  atMs,
  unixOriginMs,
}: Overview): Html {
  const unixMs = atMs + unixOriginMs
  return html`<p><b class="mode ${mode}">${mode}</b> <span class="soft">${MODE_WORDS[mode] ?? ''}</span></p>
<p class="soft">${ready ? sign('ok', 'ready') : sign('bad', 'not ready')} · version ${version} · configuration <code>${configDigest}</code> · up ${shownSpan(upMs)} · <time datetime="${new Date(unixMs).toISOString()}">${shownClock(unixMs)} UTC</time></p>`
}

const WAITING_HEAD = html`<th scope="col">Class</th><th scope="col">Requests</th><th scope="col" class="n">Prompt tokens</th><th scope="col" class="n">Oldest waits</th>`

export function waitingRegion({ waiting: { classes } }: Overview): Html {
  const most = Math.max(1, ...classes.map(({ requests }) => requests))
  const rows = classes.map(
    ({ class: name, requests, tokens, oldestMs }) =>
      html`<tr id="w-${name}"><th scope="row">${name}</th><td><span class="metered">${bar(requests / most)}<span>${shownCount(requests)}</span></span></td><td class="n">${shownCount(tokens)}</td><td class="n">${shownMs(oldestMs)}</td></tr>`,
  )
  return table('The waiting room by class', WAITING_HEAD, rows, 'Nobody waits.')
}

const SHADOW_HEAD = html`<th scope="col">Class</th><th scope="col" class="n">Sent at once</th><th scope="col" class="n">Held</th><th scope="col">Refused</th>
<th scope="col" class="n">…though it kept its promise</th><th scope="col" class="n">Attained</th><th scope="col" class="n">Enforced, estimate</th><th scope="col" class="n">Its check</th>`

/** Empty where no shadow watched. */
export function shadowRegion(
  shadow: readonly ShadowFigures[],
  spanMs: Ms,
  estimate: ShadowEstimate | null,
): Html {
  if (shadow.length === 0) return html``
  const keys = shadow.map(({ key }) => key)
  const rows = shadow.map(({ key, wouldAdmit, wouldWait, wouldShed, shedThoughGood, attainmentRatio }) => {
    const told = estimate?.classes.find((each) => each.model === key.model && each.class === key.class)
    const all = wouldAdmit + wouldWait + wouldShed
    return html`<tr id="s-${key.model}-${key.class}-${key.product}"><th scope="row">${promiseName(key, keys)}</th><td class="n">${shownCount(wouldAdmit)}</td><td class="n">${shownCount(wouldWait)}</td>
<td><span class="metered">${bar(wouldShed / all, 'warn')}<span>${shownCount(wouldShed)} <span class="soft">${shownAttainment(wouldShed / all)}</span></span></span></td>
<td class="n">${shownCount(shedThoughGood)}</td><td class="n">${shownAttainment(attainmentRatio)}</td><td class="n">${shownAttainment(told?.enforcedRatio)}</td><td class="n soft">${shownAttainment(told?.shadowRatio)} <span class="soft">for ${shownAttainment(told?.measuredRatio)}</span></td></tr>`
  })
  return html`<h2>Had it been enforcing</h2>
<p class="aside">Verdicts over the last ${shownSpan(spanMs)}, each as the shadow judged the request when it came, in a backlog that enforcing would not have let grow. ${estimate === null ? 'An estimate follows once a hundred requests have come.' : html`The estimate simulates the last ${shownSpan(estimate.spanMs)} with enforcing; its check simulates them as they were run, for what was measured.`}</p>
${table('What enforcing would have done', SHADOW_HEAD, rows, '')}`
}

export function eventsRegion(events: readonly EventFigures[], unixOriginMs: Ms): Html {
  if (events.length === 0) return html`<p class="empty">Nothing yet.</p>`
  const items = events.map(({ atMs, trouble, text, kind }) => {
    const unixMs = atMs + unixOriginMs
    return html`<li><time datetime="${new Date(unixMs).toISOString()}">${shownClock(unixMs)}</time> ${sign(trouble ? 'warn' : 'ok', kind)} <span>${text}</span></li>`
  })
  return html`<ol class="events">${items}</ol>`
}
