/** What a scrape shows: the table and nothing else, series at 0, targets as bounds, and what a reload takes away. */
import { describe, expect, it } from 'vitest'
import { METRIC_ROWS, type MetricRow } from '../../src/telemetry/metric-table.ts'
import { metricsMarkdown } from '../../src/telemetry/metrics-markdown.ts'
import { offerOf, settlementOf, sloOf } from '../slo/facts.ts'
import { agent, batch, catalog, chat, decisionOf, good, replicaOf, rig, samplesOf, shed } from './rig.ts'

const rows = METRIC_ROWS.map(([, row]) => row)

describe('the metric table', () => {
  it('names each metric once, after Prometheus’s rules', () => {
    expect(new Set(rows.map(({ name }) => name)).size).toBe(rows.length)
    for (const { name, type, unit, help, labels } of rows as MetricRow[]) {
      expect(name).toMatch(/^(sluice|process)_[a-z_]+$/)
      expect(name.endsWith('_total')).toBe(type === 'counter')
      if (unit === 'seconds' && type !== 'counter') expect(name).toMatch(/_seconds$/)
      if (name.endsWith('_ratio')) expect(unit).toBe('ratio')
      expect(help).toMatch(/\?/)
      expect(labels).not.toContain('request_id')
    }
  })

  it('gives bounds to histograms and to nothing else', () => {
    for (const row of rows as MetricRow[])
      expect(row.bounds !== undefined, row.name).toBe(row.type === 'histogram')
  })

  it('is told in full by the docs page', () => {
    const page = metricsMarkdown()
    for (const { name, help } of rows) {
      expect(page).toContain(`\`${name}\``)
      expect(page).toContain(help)
    }
    expect(page.endsWith('\n')).toBe(true)
  })
})

describe('a scrape', () => {
  it('has one header for each row and no sample without one', async () => {
    const { observer } = rig()
    observer.onSettled(good())
    observer.onDecision(decisionOf(good().offer))
    const page = String(await observer.metrics.scrape('text'))
    const headers = [...page.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name, type]) => [name, type])
    expect(headers).toEqual(rows.map(({ name, type }) => [name, type]))
    for (const key of samplesOf(page).keys()) {
      const name = key.replace(/\{.*/, '')
      const family = rows.find(
        (row) => name === row.name || name.replace(/_(bucket|sum|count)$/, '') === row.name,
      )
      expect(family, key).toBeDefined()
      const labels = [...key.matchAll(/([a-z_]+)="/g)]
        .map(([, label]) => label)
        .filter((label) => label !== 'le')
      expect([...labels].sort(), key).toEqual([...(family?.labels ?? [])].sort())
    }
    expect(page).not.toMatch(/NaN|undefined/)
    expect(page.endsWith('\n')).toBe(true)
  })

  it('is OpenMetrics when asked: families without _total, samples with it, an end mark', async () => {
    const { observer } = rig()
    const page = String(await observer.metrics.scrape('openmetrics'))
    expect(page).toMatch(/^# TYPE sluice_slo_events counter$/m)
    expect(page).toMatch(/^sluice_slo_events_total\{/m)
    expect(page).not.toMatch(/^# TYPE \S+_total /m)
    expect(page.endsWith('\n# EOF\n')).toBe(true)
  })

  it('never shows more good requests than requests, whatever is settled while it is written', async () => {
    const { observer } = rig()
    const models = Array.from({ length: 40 }, (_, place) => `m${place}`)
    observer.onLoaded({ digest: 'd', mode: 'enforce', catalog: { ...catalog, models } })
    let written = false
    const page = observer.metrics.scrape('text').finally(() => {
      written = true
    })
    let settled = 0
    for (; !written; settled++) {
      for (const pool of models) observer.onSettled(good({ pool }))
      await new Promise(setImmediate)
    }
    expect(settled).toBeGreaterThan(1)
    const samples = samplesOf(String(await page))
    for (const [series, events] of samples) {
      if (!series.startsWith('sluice_slo_events_total')) continue
      const goodEvents = samples.get(series.replace('_slo_', '_slo_good_'))
      expect(goodEvents, series).toBe(events)
    }
  })

  it('starts every indicator of every model, class and product at 0', async () => {
    const samples = samplesOf(String(await rig().observer.metrics.scrape('text')))
    for (const [name, slis] of [
      ['chat', ['all', 'ttft', 'tpot']],
      ['agent', ['all', 'ttft', 'e2e']],
    ] as const) {
      for (const product of ['p', 'none']) {
        for (const sli of slis) {
          const labels = `{model="m",class="${name}",product="${product}",sli="${sli}"}`
          expect(samples.get(`sluice_slo_events_total${labels}`)).toBe(0)
          expect(samples.get(`sluice_slo_good_events_total${labels}`)).toBe(0)
        }
      }
    }
    expect(
      [...samples.keys()].filter((key) => /slo_events_total.*(batch|sli="e2e".*chat)/.test(key)),
    ).toEqual([])
    expect(samples.get('sluice_shed_total{model="m",class="chat",reason="no_replica"}')).toBe(0)
    expect(samples.get('sluice_slo_objective_ratio{model="m",class="chat"}')).toBe(0.99)
    expect([...samples.keys()].filter((key) => key.includes('attainment_ratio'))).toEqual([])
  })

  it('counts what was judged, shed and left out', async () => {
    const { observer } = rig()
    observer.onSettled(good())
    observer.onSettled(shed())
    observer.onSettled(settlementOf({ offer: offerOf(batch) }))
    const samples = samplesOf(String(await observer.metrics.scrape('text')))
    const chatSeries = 'model="m",class="chat"'
    expect(samples.get(`sluice_slo_events_total{${chatSeries},product="p",sli="all"}`)).toBe(2)
    expect(samples.get(`sluice_slo_good_events_total{${chatSeries},product="p",sli="all"}`)).toBe(1)
    expect(samples.get(`sluice_slo_events_total{${chatSeries},product="p",sli="ttft"}`)).toBe(1)
    expect(samples.get(`sluice_requests_total{${chatSeries},outcome="shed"}`)).toBe(1)
    expect(samples.get(`sluice_shed_total{${chatSeries},reason="slo_unreachable"}`)).toBe(1)
    expect(samples.get('sluice_slo_excluded_total{model="m",class="batch",cause="no_targets"}')).toBe(1)
    expect(samples.get(`sluice_slo_attainment_ratio{${chatSeries},product="p",sli="all",window="5m"}`)).toBe(
      0.5,
    )
    expect(samples.get(`sluice_slo_burn_rate{${chatSeries},product="p",sli="all",window="5m"}`)).toBeCloseTo(
      50,
    )
    expect(samples.get(`sluice_slo_error_budget_remaining_ratio{${chatSeries},product="p"}`)).toBeCloseTo(-49)
    expect(samples.get(`sluice_tokens_total{${chatSeries},kind="output"}`)).toBe(50)
    expect(samples.get(`sluice_time_to_first_token_seconds_sum{${chatSeries}}`)).toBeCloseTo(0.3)
  })

  it('has each class target as a bucket bound, so that good is what lies at or under it', async () => {
    const { observer } = rig()
    for (const ttftMs of [449, 450, 451])
      observer.onSettled(settlementOf({ offer: offerOf(chat), ttftMs, tpotMs: 55 }))
    const samples = samplesOf(String(await observer.metrics.scrape('text')))
    expect(samples.get('sluice_time_to_first_token_seconds_bucket{le="0.45",model="m",class="chat"}')).toBe(2)
    expect(
      samples.get('sluice_time_per_output_token_seconds_bucket{le="0.055",model="m",class="chat"}'),
    ).toBe(3)
    expect(samples.get('sluice_request_duration_seconds_bucket{le="17",model="m",class="agent"}')).toBe(0)
  })

  it('takes no label value from traffic and survives numbers that are none', async () => {
    const { observer } = rig()
    observer.onSettled(good({ pool: 'evil"\nmodel', product: 'evil' }))
    observer.onSettled({
      ...good(),
      ttftMs: Number.NaN,
      tpotMs: Number.NaN,
      e2eMs: Number.NaN,
      promptTokens: Number.NaN,
    })
    observer.onSettled({ ...good(), predictedTtftMs: 0 })
    observer.onDecided(Number.NaN)
    observer.onClamped('t', 'evil')
    const page = String(await observer.metrics.scrape('text'))
    expect(page).not.toMatch(/evil|NaN/)
    expect(samplesOf(page).get('sluice_requests_total{model="other",class="chat",outcome="completed"}')).toBe(
      1,
    )
    expect(samplesOf(page).get('sluice_clamped_requests_total{class="other"}')).toBe(1)
  })

  it('has the same series after 10 000 invented names as before', async () => {
    const { observer } = rig()
    observer.onSettled(good())
    const series = async () => [...samplesOf(String(await observer.metrics.scrape('text'))).keys()]
    const settle = (name: string) => {
      const slo = sloOf({ ...chat, name: `class-${name}` })
      observer.onSettled(good({ pool: name, product: name, tenant: name, route: name, requestId: name, slo }))
      observer.onClamped(name, name)
    }
    settle('first')
    const before = await series()
    for (let index = 0; index < 10_000; index += 1) settle(`invented-${index}`)
    expect(await series()).toEqual(before)
    expect(before.some((key) => key.includes('"other"'))).toBe(true)
  })

  it('shows replicas as they are now and forgets those that are gone', async () => {
    const { observer, parts, clock } = rig()
    clock.nowMs = 10_000
    const gauges = { seenAtMs: 8000, runningRequests: 5, waitingRequests: 1, kvUsageRatio: 0.5 }
    parts.replicas = [replicaOf({ gauges }), replicaOf({ name: 'r2', state: 'down' })]
    const samples = samplesOf(String(await observer.metrics.scrape('text')))
    expect(samples.get('sluice_in_flight_requests{replica="r1"}')).toBe(3)
    expect(samples.get('sluice_scrape_age_seconds{replica="r1"}')).toBe(2)
    expect(samples.get('sluice_ledger_drift_requests{replica="r1"}')).toBe(3)
    expect(samples.get('sluice_upstream_connections{replica="r1"}')).toBe(4)
    expect([samples.get('sluice_client_connections'), samples.get('sluice_buffered_bytes')]).toEqual([
      7, 8000,
    ])
    expect(samples.get('sluice_replica_state{replica="r2",state="down"}')).toBe(1)
    expect(samples.get('sluice_replica_state{replica="r2",state="live"}')).toBe(0)
    expect(samples.has('sluice_kv_usage_ratio{replica="r2"}')).toBe(false)
    parts.replicas = []
    expect(String(await observer.metrics.scrape('text'))).not.toMatch(/replica="r/)
  })

  it('tells what each tenant of the file got, and joins the others', async () => {
    const { observer } = rig()
    const tenants = (names: readonly string[]) => ({
      digest: 'd',
      mode: 'enforce',
      catalog: { ...catalog, tenants: names, tenantShares: { acme: 3 } },
    })
    observer.onLoaded(tenants(['acme', 'idle']))
    observer.onSettled(good({ tenant: 'acme' }))
    observer.onSettled(shed({ tenant: 'acme' }))
    observer.onSettled(good({ tenant: 'stranger' }))
    const samples = samplesOf(String(await observer.metrics.scrape('text')))
    const requests = (tenant: string, slo: string) =>
      samples.get(`sluice_tenant_requests_total{tenant="${tenant}",slo="${slo}"}`)
    expect([requests('acme', 'good'), requests('acme', 'bad'), requests('idle', 'good')]).toEqual([1, 1, 0])
    expect([requests('other', 'good'), requests('stranger', 'good')]).toEqual([1, undefined])
    expect(samples.get('sluice_tenant_tokens_total{tenant="acme",kind="output"}')).toBe(50)
    const share = (tenant: string) => samples.get(`sluice_tenant_share_ratio{tenant="${tenant}"}`)
    expect([share('acme'), share('idle')]).toEqual([0.75, 0.25])
    observer.onLoaded(tenants(['idle']))
    expect(String(await observer.metrics.scrape('text'))).not.toContain('tenant="acme"')
  })

  it('asks how many replicas would carry what was offered, and shows a finite answer only', async () => {
    const { observer, parts, clock } = rig()
    const wanted = async () =>
      samplesOf(String(await observer.metrics.scrape('text'))).get('sluice_desired_replicas{model="m"}')
    parts.replicasWanted = 3.4
    expect(await wanted()).toBeUndefined()
    observer.onDecision(decisionOf(good().offer))
    observer.onSettled(good())
    clock.nowMs = 60_000
    expect(await wanted()).toBe(3.4)
    for (const unknown of [undefined, Number.POSITIVE_INFINITY]) {
      parts.replicasWanted = unknown
      expect(await wanted()).toBeUndefined()
    }
  })

  it('measures how far predictions were off and how often they covered', async () => {
    const { observer } = rig()
    for (const ttftMs of [100, 190, 200, 300]) observer.onSettled({ ...good(), ttftMs, predictedTtftMs: 200 })
    const samples = samplesOf(String(await observer.metrics.scrape('text')))
    expect(samples.get('sluice_ttft_prediction_coverage_ratio{model="m",quantile="gate"}')).toBe(0.75)
    expect(samples.get('sluice_ttft_prediction_error_ratio_count{model="m",direction="late"}')).toBe(1)
    expect(samples.get('sluice_ttft_prediction_error_ratio_sum{model="m",direction="early"}')).toBeCloseTo(
      0.55,
    )
  })

  it('is shared by those who ask at the same time', async () => {
    const { metrics } = rig().observer
    const [first, second] = [metrics.scrape('text'), metrics.scrape('text')]
    expect(first).toBe(second)
    await first
    const third = metrics.scrape('text')
    expect(third).not.toBe(first)
    await third
  })

  it('gives turns of the loop away while it prints a large page', async () => {
    const names = (prefix: string, count: number) =>
      Array.from({ length: count }, (_, index) => `${prefix}${index}`)
    const { observer } = rig()
    observer.onLoaded({ digest: 'd', mode: 'enforce', catalog: { ...catalog, models: names('m', 40) } })
    let turns = 0
    let printing = true
    const turn = (): void => {
      turns++
      if (printing) setImmediate(turn)
    }
    setImmediate(turn)
    await observer.metrics.scrape('text')
    printing = false
    expect(turns).toBeGreaterThan(2)
  })
})

describe('a reload', () => {
  const reload = (observer: ReturnType<typeof rig>['observer'], change: Partial<typeof catalog>) =>
    observer.onLoaded({ digest: 'new', mode: 'shadow', catalog: { ...catalog, ...change } })

  it('keeps counters of what stays, drops what went and starts what came at 0', async () => {
    const { observer } = rig()
    observer.onSettled(good())
    observer.onSettled(good({ product: 'none' }))
    reload(observer, { models: ['m', 'n'], classes: ['chat', 'agent'], products: ['p', 'q'] })
    const samples = samplesOf(String(await observer.metrics.scrape('text')))
    const events = (rest: string) => samples.get(`sluice_slo_events_total{${rest},sli="all"}`)
    expect(events('model="m",class="chat",product="p"')).toBe(1)
    expect(events('model="m",class="chat",product="none"')).toBeUndefined()
    expect(events('model="m",class="chat",product="q"')).toBe(0)
    expect(events('model="n",class="agent",product="q"')).toBe(0)
    expect([...samples.keys()].filter((key) => /batch|product="none"/.test(key))).toEqual([])
  })

  it('brings new targets in as bounds', async () => {
    const { observer } = rig()
    const faster = sloOf({ ...chat, ttftMs: 123 })
    reload(observer, { classFor: (name) => ({ chat: faster, agent, batch })[name] })
    expect(String(await observer.metrics.scrape('text'))).toContain('le="0.123"')
  })

  it('says under which name the engines of a model know it', async () => {
    const { observer } = rig()
    const names = (model: string, servedName: string) =>
      observer.onLoaded({ catalog, digest: 'd', mode: 'off', servedNames: { [model]: servedName } })
    names('m', 'org/old')
    names('m', 'org/m')
    const page = String(await observer.metrics.scrape('text'))
    expect(page.match(/^sluice_model_info\{.*$/gm)).toEqual([
      'sluice_model_info{model="m",served_name="org/m"} 1',
    ])
  })

  it('is told by digest, mode, success and time', async () => {
    const { observer } = rig()
    reload(observer, {})
    let samples = samplesOf(String(await observer.metrics.scrape('text')))
    expect(samples.get('sluice_config_info{digest="new",mode="shadow"}')).toBe(1)
    expect(samples.get('sluice_config_last_reload_successful')).toBe(1)
    expect(samples.get('sluice_config_last_reload_success_timestamp_seconds')).toBe(1_700_000_000)
    observer.onReloadFailed()
    samples = samplesOf(String(await observer.metrics.scrape('text')))
    expect(samples.get('sluice_config_last_reload_successful')).toBe(0)
  })
})
