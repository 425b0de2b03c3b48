/** Shows what a configuration says, so that a reader sees whether it was understood as meant. */
import Table from 'cli-table3'
import pc from 'picocolors'
import type { Config, ModelConfig, ReplicaSource, TenantConfig } from '../config/config.ts'
import { formatAddress, formatCount, formatDuration, formatShare } from '../config/units.ts'
import { hasTargets, type SloClass } from '../core/request.ts'

const MODES: Readonly<Record<Config['mode'], string>> = {
  enforce: 'enforce: admits, holds, reroutes and sheds',
  shadow: 'shadow: routes plainly and records what enforcing would have done',
  off: 'off: routes plainly',
}

/** A few lines per section; no secrets. */
export function showConfig(config: Config, colors: boolean): string {
  const paint = pc.createColors(colors)
  const section = (title: string, body: string) => `\n${paint.bold(title)}\n${body}\n`
  const { admin, listen, instances } = config
  const general = columns([
    ['  mode', MODES[config.mode]],
    ['  traffic', `${formatAddress(listen)}, ${describeAuth(config)}`],
    ['  admin', `${formatAddress(admin.listen)}, ${admin.token === undefined ? 'no token' : 'token set'}`],
    ...(instances > 1 ? [['  instances', `${instances}: limits below are the share of one`]] : []),
    ['  digest', config.digest],
  ])
  return [
    `${general}\n`,
    section('models', config.models.map(describeModel).join('\n')),
    section('classes', classTable(config)),
    config.products.length === 0 ? '' : section('products', productTable(config)),
    config.tenants.length === 0 ? '' : section('tenants', columns(config.tenants.map(describeTenant))),
  ].join('')
}

function columns(rows: readonly (readonly string[])[]): string {
  const none = { top: '', 'top-mid': '', 'top-left': '', 'top-right': '' }
  const sides = { left: '', 'left-mid': '', mid: '', 'mid-mid': '', right: '', 'right-mid': '', middle: '  ' }
  const bottom = { bottom: '', 'bottom-mid': '', 'bottom-left': '', 'bottom-right': '' }
  const style = { 'padding-left': 0, 'padding-right': 0, border: [], head: [] }
  const table = new Table({ chars: { ...none, ...sides, ...bottom }, style })
  table.push(...rows.map((row) => [...row]))
  return table
    .toString()
    .split('\n')
    .map((line) => line.trimEnd())
    .join('\n')
}

function describeAuth({ auth, tenants }: Config): string {
  switch (auth.kind) {
    case 'keys':
      return `by key of ${tenants.length} tenant${tenants.length === 1 ? '' : 's'}`
    case 'none':
      return 'open to everyone who reaches it'
    case 'header':
      return `tenant from ${auth.header}, believed from ${auth.trusted.join(', ')}`
    default:
      return auth satisfies never
  }
}

function describeModel(model: ModelConfig): string {
  const remarks = [
    model.aliases.length > 0 ? `also ${model.aliases.join(', ')}` : '',
    model.servedName === model.name ? '' : `served as ${model.servedName}`,
    model.adapters.length > 0 ? `adapters ${model.adapters.join(', ')}` : '',
    model.profile === undefined ? 'no profile: learns from nothing' : `profile ${model.profile}`,
  ].filter((remark) => remark !== '')
  const replicas = columns(
    model.replicas.map((replica) => [`    ${describeReplica(replica)}`, replica.engine]),
  )
  return `  ${model.name} (${remarks.join('; ')})\n${replicas}`
}

function describeReplica(replica: ReplicaSource): string {
  return replica.kind === 'url' ? replica.url : `every address of ${replica.host}, port ${replica.port}`
}

function classTable(config: Config): string {
  const head = ['  class', 'ttft', 'tpot', 'e2e', 'objective', 'overload', 'waits up to', 'weight']
  const rows = Object.entries(config.classes).flatMap(([name, slo]) => [
    classRow(`${name}${name === config.defaultClass ? ' (default)' : ''}`, slo),
    ...Object.entries(config.classesByModel[name] ?? {}).map(([model, own]) =>
      classRow(`  for ${model}`, own),
    ),
  ])
  return columns([head, ...rows])
}

function classRow(name: string, slo: SloClass): readonly string[] {
  const time = (ms: number | undefined) => (ms === undefined ? '-' : formatDuration(ms))
  const growth = slo.ttftPer1kTokensMs > 0 ? ` +${formatDuration(slo.ttftPer1kTokensMs)}/1k` : ''
  const objective = slo.objectiveRatio === undefined ? '-' : formatShare(slo.objectiveRatio)
  const targets = [`${time(slo.ttftMs)}${growth}`, time(slo.tpotMs), time(slo.e2eMs)]
  const shown = hasTargets(slo) ? targets : ['no targets', '', '']
  return [`  ${name}`, ...shown, objective, slo.overload, formatDuration(slo.maxWaitMs), String(slo.weight)]
}

function productTable(config: Config): string {
  return columns(
    config.products.map(({ name, match, class: className }) => [
      `  ${name}`,
      [
        ...Object.entries(match.header ?? {}).map(([header, value]) => `${header}: ${value}`),
        ...(match.path === undefined ? [] : [match.path]),
        ...(['tenant', 'model'] as const).flatMap((key) =>
          match[key] === undefined ? [] : [`${key} ${match[key]}`],
        ),
      ].join(' and '),
      `→ ${className}`,
    ]),
  )
}

function describeTenant(tenant: TenantConfig): readonly string[] {
  const { concurrentRequests, requestsPerSec, tokensPerMin } = tenant.limits
  const limits = [
    concurrentRequests === undefined ? '' : `${concurrentRequests} at once`,
    requestsPerSec === undefined ? '' : `${Number(requestsPerSec.toFixed(3))} requests/s`,
    tokensPerMin === undefined ? '' : `${formatCount(Math.round(tokensPerMin))} tokens/min`,
  ].filter((limit) => limit !== '')
  return [
    `  ${tenant.name}`,
    `${tenant.keySha256.length} key${tenant.keySha256.length === 1 ? '' : 's'}`,
    `classes ${tenant.classes?.join(', ') ?? 'all'}`,
    `models ${tenant.models?.join(', ') ?? 'all'}`,
    limits.length === 0 ? 'no limits' : limits.join(', '),
  ]
}
