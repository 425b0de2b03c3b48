/** Holds what containers are started from together: Dockerfile, its context, compose.yaml and the files it mounts. */
import { existsSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { loadConfig } from '../src/config/load.ts'

const ROOT = new URL('../', import.meta.url)
const read = (path: string): string => readFileSync(new URL(path, ROOT), 'utf8')

interface Service {
  readonly command?: readonly string[]
  readonly ports?: readonly string[]
  readonly volumes?: readonly string[]
  readonly read_only?: boolean
}

const compose = parse(read('compose.yaml'), { merge: true }) as { services: Record<string, Service> }

describe('the Dockerfile', () => {
  const dockerfile = read('Dockerfile')
  const copied = [...dockerfile.matchAll(/^COPY (?!--from)(.+)$/gm)].flatMap(
    ([, names]) => names?.split(/\s+/).slice(0, -1) ?? [],
  )

  it('copies only files that exist and that its context lets through', () => {
    const allowed = new Set([...read('.dockerignore').matchAll(/^!(.+)$/gm)].map(([, name]) => name))
    expect(copied.length).toBeGreaterThan(5)
    expect(copied.filter((name) => !existsSync(new URL(name, ROOT)))).toEqual([])
    expect(copied.filter((name) => !allowed.has(name))).toEqual([])
  })

  it('runs as a numeric user that is not root, and stops on SIGTERM', () => {
    expect(dockerfile).toMatch(/^USER [1-9]\d*:[1-9]\d*$/m)
    expect(dockerfile).toMatch(/^STOPSIGNAL SIGTERM$/m)
    expect(dockerfile).toMatch(/^ENTRYPOINT \["node", /m)
  })

  it('is labelled with the version of the package', () => {
    const { version } = JSON.parse(read('package.json')) as { version: string }
    expect(dockerfile).toContain(`ARG VERSION=${version}\n`)
  })
})

describe('compose.yaml', () => {
  it('mounts files that exist', () => {
    const sources = Object.values(compose.services)
      .flatMap((service) => service.volumes ?? [])
      .map((volume) => volume.split(':')[0] ?? '')
      .filter((source) => source.startsWith('.'))
    expect(sources.length).toBeGreaterThan(1)
    expect(sources.filter((source) => !existsSync(new URL(source, ROOT)))).toEqual([])
  })

  it('publishes ports on loopback only and writes to no root', () => {
    for (const [name, service] of Object.entries(compose.services)) {
      expect(service.read_only, name).toBe(true)
      for (const port of service.ports ?? []) expect(port).toMatch(/^127\.0\.0\.1:/)
    }
  })

  it('starts Sluice with a configuration that loads and names the engines of the file', () => {
    const text = read('config/compose/sluice.yaml')
    const loaded = loadConfig(text, { fileName: 'sluice.yaml', env: { SLUICE_ADMIN_TOKEN: 'secret' } })
    if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems, null, 2))
    const hosts = loaded.config.models.flatMap((model) =>
      model.replicas.map((replica) =>
        replica.kind === 'url' ? new URL(replica.url).hostname : replica.host,
      ),
    )
    expect(hosts.sort()).toEqual(
      Object.keys(compose.services)
        .filter((name) => name.startsWith('engine'))
        .sort(),
    )
  })

  it("has Prometheus scrape Sluice's admin port", () => {
    const scrape = parse(read('config/compose/prometheus.yml')) as {
      scrape_configs: readonly { static_configs: readonly { targets: readonly string[] }[] }[]
    }
    const targets = scrape.scrape_configs.flatMap((job) => job.static_configs.flatMap((each) => each.targets))
    expect(targets).toEqual(['sluice:9090'])
    expect(compose.services.sluice).toBeDefined()
  })
})
