/** The manifests of config/kubernetes fit each other, the configuration inside them, and the ports that Sluice opens. */
import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { loadConfig } from '../src/config/load.ts'
import { unknownNames } from './exports/known-series.ts'
import { HAS_AMTOOL, HAS_PROMTOOL, runTool } from './support/promtool.ts'

const FOLDER = new URL('../config/kubernetes/', import.meta.url)
const files = readdirSync(FOLDER)
// biome-ignore lint/suspicious/noExplicitAny: objects of other programs, looked into here and there
const read = (name: string): any => parse(readFileSync(new URL(name, FOLDER), 'utf8'))

const deployment = read('deployment.yaml')
const pod = deployment.spec.template
const [container] = pod.spec.containers
const service = read('service.yaml')
const text: string = read('config-map.yaml').data['sluice.yaml']
const config = loadConfig(text, {
  fileName: 'sluice.yaml',
  env: { SLUICE_ADMIN_TOKEN: 'a-long-enough-token' },
})
if (!config.ok) throw new Error(JSON.stringify(config.problems))

const KINDS: Readonly<Record<string, readonly [apiVersion: string, kind: string]>> = {
  'config-map.yaml': ['v1', 'ConfigMap'],
  'deployment.yaml': ['apps/v1', 'Deployment'],
  'service.yaml': ['v1', 'Service'],
  'service-monitor.yaml': ['monitoring.coreos.com/v1', 'ServiceMonitor'],
  'prometheus-rule.yaml': ['monitoring.coreos.com/v1', 'PrometheusRule'],
  'keda-scaled-object.yaml': ['keda.sh/v1alpha1', 'ScaledObject'],
  'hpa.yaml': ['autoscaling/v2', 'HorizontalPodAutoscaler'],
}

describe('the manifests', () => {
  it.each(files)('%s is one object with a name that DNS takes', (name) => {
    const [apiVersion, kind] = KINDS[name] ?? []
    const { metadata, ...head } = read(name)
    expect(head).toMatchObject({ apiVersion, kind })
    expect(metadata.name).toMatch(/^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/)
    expect(readFileSync(new URL(name, FOLDER), 'utf8')).toMatch(/^# /)
  })

  it('find each other by labels and ports', () => {
    const { matchLabels } = deployment.spec.selector
    expect(pod.metadata.labels).toMatchObject(matchLabels)
    expect(service.spec.selector).toEqual(matchLabels)
    const opened = container.ports.map((port: { name: string }) => port.name)
    for (const { targetPort } of service.spec.ports) expect(opened).toContain(targetPort)
    const monitor = read('service-monitor.yaml')
    expect(service.metadata.labels).toMatchObject(monitor.spec.selector.matchLabels)
    for (const { port } of monitor.spec.endpoints) {
      expect(service.spec.ports.map((each: { name: string }) => each.name)).toContain(port)
    }
  })

  it('open the ports of the file, mount it where it is read, and give it what it asks for', () => {
    const ports = Object.fromEntries(
      container.ports.map((port: { name: string; containerPort: number }) => [port.name, port.containerPort]),
    )
    expect(ports).toEqual({ http: config.config.listen.port, admin: config.config.admin.listen.port })
    expect(container.args).toEqual(['serve', '-c', `${container.volumeMounts[0].mountPath}/sluice.yaml`])
    expect(pod.spec.volumes[0].configMap.name).toBe(read('config-map.yaml').metadata.name)
    const given = container.env.map(({ name }: { name: string }) => name)
    const wanted = [...text.matchAll(/\$\{(\w+)\}/g)].map(([, name]) => name)
    expect(given).toEqual(wanted)
    expect(config.config.instances).toBe(deployment.spec.replicas)
  })

  it('leave time to drain, and probe what never depends on load', () => {
    const graceMs = pod.spec.terminationGracePeriodSeconds * 1000
    const preStopMs = Number(
      /setTimeout\(\(\) => \{\}, (\d+)\)/.exec(container.lifecycle.preStop.exec.command.join(' '))?.[1],
    )
    expect(graceMs).toBeGreaterThanOrEqual(preStopMs + config.config.timeouts.drainMs + 5000)
    expect(container.livenessProbe.httpGet).toEqual({ path: '/livez', port: 'admin' })
    expect(container.readinessProbe.httpGet).toEqual({ path: '/readyz', port: 'admin' })
  })

  it('run without root on a file system that can not be written', () => {
    expect(pod.spec.securityContext).toMatchObject({ runAsNonRoot: true, runAsUser: 65532 })
    expect(container.securityContext).toMatchObject({
      readOnlyRootFilesystem: true,
      allowPrivilegeEscalation: false,
      capabilities: { drop: ['ALL'] },
    })
  })

  it('scale a model of the file by a metric that there is', () => {
    const [trigger] = read('keda-scaled-object.yaml').spec.triggers
    expect(unknownNames(trigger.metadata.query)).toEqual([])
    const [metric] = read('hpa.yaml').spec.metrics
    expect(unknownNames(metric.external.metric.name)).toEqual([])
    const models = config.config.models.map(({ name }) => name)
    expect(models).toContain(metric.external.metric.selector.matchLabels.model)
    expect(trigger.metadata.query).toContain(`model="${models[0]}"`)
  })

  it('carry the rules that are exported', () => {
    const rules = parse(readFileSync(new URL('../dashboards/sluice-rules.yml', import.meta.url), 'utf8'))
    expect(read('prometheus-rule.yaml').spec).toEqual(rules)
  })
})

const root = new URL('../', import.meta.url).pathname

describe('config/alertmanager.yml', () => {
  it('routes every severity, and silences by alerts that there are', () => {
    const alertmanager = parse(readFileSync(new URL('../config/alertmanager.yml', import.meta.url), 'utf8'))
    const rules = readFileSync(new URL('../dashboards/sluice-rules.yml', import.meta.url), 'utf8')
    for (const rule of alertmanager.inhibit_rules) {
      for (const matcher of [...rule.source_matchers, ...rule.target_matchers]) {
        expect(rules).toContain(`alert: ${/^alertname="(\w+)"$/.exec(matcher)?.[1]}\n`)
      }
    }
    expect(alertmanager.route.routes[0].matchers).toEqual(['severity="page"'])
  })

  it.skipIf(!HAS_AMTOOL)('is sound by the word of amtool', async () => {
    expect(await runTool('amtool', ['check-config', 'config/alertmanager.yml'], root)).toContain('SUCCESS')
  })
})

describe('config/prometheus.yml', () => {
  it.skipIf(!HAS_PROMTOOL)('is sound by the word of promtool, with the rules that it names', async () => {
    const said = await runTool('promtool', ['check', 'config', 'config/prometheus.yml'], root)
    expect(said).toMatch(/SUCCESS: \d+ rules found/)
  })

  it('scrapes the port that the demo takes', () => {
    const { scrape_configs: jobs } = parse(
      readFileSync(new URL('../config/prometheus.yml', import.meta.url), 'utf8'),
    )
    const demo = readFileSync(new URL('../src/cli/demo.ts', import.meta.url), 'utf8')
    const port = /ADMIN_PORT = (\d+)_(\d+)/.exec(demo)?.slice(1).join('')
    expect(jobs[0].static_configs[0].targets).toEqual([`127.0.0.1:${port}`])
  })
})
