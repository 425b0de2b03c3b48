/** The plain page at `/`: the main numbers in tables, readable without scripts, made anew every few seconds. */
import { html, raw } from 'hono/html'
import type { SeriesKey } from '../slo/attainment.ts'
import type { SeriesHealth } from '../slo/slo-health.ts'
import type { AdminPorts } from './ports.ts'
import { modelLiveness, readiness } from './readiness.ts'
import { healthById } from './slo-report.ts'

const REFRESH_SEC = 5

const STYLE = `
:root { color-scheme: light dark; --line: light-dark(#d5d9e0, #383e48); --dim: light-dark(#5b6472, #9aa3b0);
  --ok: light-dark(#1a7f37, #56d364); --warn: light-dark(#9a6700, #e3b341); --bad: light-dark(#cf222e, #ff7b72) }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.3rem; margin: 0 } h2 { font-size: 1rem; margin: 2rem 0 .5rem }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums }
th, td { text-align: left; padding: .3rem .7rem .3rem 0; border-bottom: 1px solid var(--line); white-space: nowrap }
td.n, th.n { text-align: right } .dim { color: var(--dim) } .ok { color: var(--ok) } .warn { color: var(--warn) }
.bad { color: var(--bad) } .wrap { overflow-x: auto } a { color: inherit }
`

/** `inline-style` of the content security policy: the hash is not worth it where no script can run at all. */
export const PAGE_POLICY =
  "default-src 'none'; style-src 'unsafe-inline'; form-action 'none'; frame-ancestors 'none'"

export function page(ports: AdminPorts): string {
  const { ready } = readiness(ports)
  const waiting = ports.samples.waiting()
  const total = ports.observer.attainment.total('5m', ports.nowMs())
  const body = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8"><meta name="viewport" content="width=device-width"><meta http-equiv="refresh" content="${REFRESH_SEC}">
<title>Sluice</title>
<style>${raw(STYLE)}</style>
</head>
<body>
<h1>Sluice</h1>
<p class="dim">version ${ports.version}, mode <strong>${ports.mode()}</strong>, configuration ${ports.configDigest()},
<span class="${ready ? 'ok' : 'bad'}">${ready ? 'ready' : 'not ready'}</span></p>
<p>Last 5 minutes: <strong>${percent(total.sli.all.attainmentRatio)}</strong> of ${total.sli.all.good + total.sli.all.bad} judged requests good,
${decimal(total.goodputRequestsPerSec)} good a second; waiting now: ${waiting.requests} requests, ${Math.round(waiting.tokens)} prompt tokens.</p>
<h2>Promises</h2>
<div class="wrap"><table>
<thead><tr><th>model</th><th>class</th><th>product</th><th>state</th><th class="n">objective</th><th class="n">5 m</th><th class="n">1 h</th><th class="n">6 h</th>
<th class="n">budget left</th><th class="n">good/s</th><th class="n">TTFT p50 / p99</th><th class="n">TPOT p50 / p99</th></tr></thead>
<tbody>${raw(promiseRows(ports))}</tbody></table></div>
<h2>Replicas</h2>
<div class="wrap"><table>
<thead><tr><th>replica</th><th>models</th><th>state</th><th class="n">in flight</th><th class="n">backlog tokens</th><th class="n">KV used</th><th class="n">scrape age</th></tr></thead>
<tbody>${raw(replicaRows(ports))}</tbody></table></div>
<h2>Models</h2>
<p>${raw(modelLiveness(ports).map(modelText).join(', '))}</p>
<p class="dim"><a href="/slo">/slo</a> · <a href="/replicas">/replicas</a> · <a href="/decisions">/decisions</a> · <a href="/metrics">/metrics</a> ·
<a href="/readyz?verbose">/readyz</a> · <a href="/health/slo">/health/slo</a></p>
</body>
</html>`
  return String(body)
}

function promiseRows(ports: AdminPorts): string {
  const { observer } = ports
  const health = healthById(observer.health())
  const rows = observer.attainment.keys().map((key) => promiseRow(ports, key, health.get(idOf(key))))
  return rows.length === 0 ? '<tr><td colspan="12" class="dim">No request yet.</td></tr>' : rows.join('\n')
}

function promiseRow(ports: AdminPorts, key: SeriesKey, health: SeriesHealth | undefined): string {
  const { attainment } = ports.observer
  const nowMs = ports.nowMs()
  const state = health?.state ?? 'unknown'
  const share = (window: '5m' | '1h' | '6h'): string => {
    const { good, bad } = attainment.share(key, 'all', window, nowMs)
    return percent(good + bad === 0 ? undefined : good / (good + bad))
  }
  const quantiles = (sample: 'ttft' | 'tpot'): string => {
    const told = attainment.quantiles(key, sample, '5m', nowMs)
    return told === undefined ? '-' : `${decimal(told.p50Ms)} / ${decimal(told.p99Ms)} ms`
  }
  const tone = { ok: 'ok', burning: 'warn', critical: 'bad', unknown: 'dim' }[state]
  const row = html`<tr><td>${key.model}</td><td>${key.class}</td><td>${key.product}</td><td class="${tone}">${state}</td>
<td class="n">${percent(attainment.objectiveRatio(key))}</td><td class="n">${share('5m')}</td><td class="n">${share('1h')}</td><td class="n">${share('6h')}</td>
<td class="n">${percent(attainment.budgetRemainingRatio(key, nowMs))}</td><td class="n">${decimal(attainment.goodputRequestsPerSec(key, '5m', nowMs))}</td>
<td class="n">${quantiles('ttft')}</td><td class="n">${quantiles('tpot')}</td></tr>`
  return String(row)
}

function replicaRows(ports: AdminPorts): string {
  const rows = ports.samples.replicas().map(({ name, models, state, ledger, gauges }) => {
    const tone = state === 'live' ? 'ok' : state === 'down' ? 'bad' : 'warn'
    const age =
      gauges === undefined ? '-' : `${decimal(Math.max(0, ports.nowMs() - gauges.seenAtMs) / 1000)} s`
    return String(html`<tr><td>${name}</td><td>${models.join(', ')}</td><td class="${tone}">${state}</td><td class="n">${ledger.inFlightRequests}</td>
<td class="n">${Math.round(ledger.backlogTokens)}</td><td class="n">${percent(gauges?.kvUsageRatio)}</td><td class="n">${age}</td></tr>`)
  })
  return rows.length === 0 ? '<tr><td colspan="7" class="dim">No replica.</td></tr>' : rows.join('\n')
}

function modelText({ model, live, replicas }: { model: string; live: number; replicas: number }): string {
  return String(html`<span class="${live > 0 ? 'ok' : 'bad'}">${model}: ${live} of ${replicas} live</span>`)
}

function percent(ratio: number | undefined): string {
  return ratio === undefined || !Number.isFinite(ratio) ? '-' : `${(ratio * 100).toFixed(2)} %`
}

function decimal(value: number): string {
  return Number.isFinite(value) ? value.toFixed(value < 10 ? 2 : 0) : '-'
}

function idOf(key: SeriesKey): string {
  return `${key.model}\n${key.class}\n${key.product}`
}
