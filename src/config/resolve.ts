/** Makes a checked file into the Config that the rest of Sluice sees: names resolved, units in names. */
import type { TenantLimits } from '../core/gate-settings.ts'
import type { EngineLimits } from '../core/replica.ts'
import type { SloClass } from '../core/request.ts'
import { BEST_EFFORT } from './builtin-classes.ts'
import type { AuthConfig, Config, ModelConfig, ProductRule, ReplicaSource, TenantConfig } from './config.ts'
import { digestOf } from './digest.ts'
import type { DeclaredNames } from './names.ts'
import { mergeTargets, resolveClass } from './resolve-classes.ts'
import type { ConfigFile, FileModel } from './schema.ts'

export function resolveConfig(file: ConfigFile, names: DeclaredNames): Config {
  const { limits, timeouts, slo } = file
  const config: Omit<Config, 'digest'> = {
    listen: file.listen,
    admin: {
      listen: file.admin.listen,
      ...(file.admin.agent && { agent: file.admin.agent }),
      ...(file.admin.token && { token: file.admin.token }),
    },
    mode: file.mode,
    instances: file.instances,
    workers: file.workers,
    models: file.models.map(resolveModel),
    ...resolveClasses(file, names),
    defaultClass: file.default_class,
    products: file.products.map((product) => resolveProduct(product, names)),
    auth: resolveAuth(file),
    tenants: file.tenants.map((tenant) => resolveTenant(tenant, file.instances, names)),
    slo: { windowMs: slo.window, ...(slo.state_file !== undefined && { stateFile: slo.state_file }) },
    limits: {
      bodyBytes: limits.body,
      bufferedBytes: limits.buffered,
      waiting: limits.waiting,
      requestMs: limits.request,
    },
    timeouts: {
      connectMs: timeouts.connect,
      firstByteMs: timeouts.first_byte,
      betweenBytesMs: timeouts.between_bytes,
      heartbeatAfterMs: timeouts.heartbeat_after,
      drainMs: timeouts.drain,
    },
    rerouteBudgetRatio: file.reroute.budget,
    passthrough: file.passthrough,
  }
  return { digest: digestOf(config), ...config }
}

function resolveModel(model: FileModel): ModelConfig {
  const args = model.engine_args
  const engineArgs: EngineLimits = {
    ...(args.max_num_seqs !== undefined && { maxNumSeqs: args.max_num_seqs }),
    ...(args.max_num_batched_tokens !== undefined && { maxNumBatchedTokens: args.max_num_batched_tokens }),
    ...(args.kv_capacity_tokens !== undefined && { kvCapacityTokens: args.kv_capacity_tokens }),
    ...(args.max_model_len !== undefined && { maxModelLenTokens: args.max_model_len }),
    ...(args.prefill_engines !== undefined && { prefillEngines: args.prefill_engines }),
  }
  return {
    name: model.name,
    aliases: model.aliases,
    servedName: model.served_name ?? model.name,
    adapters: model.adapters,
    ...(model.profile !== undefined && { profile: model.profile }),
    engineArgs,
    priorityScheduling: args.priority_scheduling,
    renameAnswers: model.rename_answers,
    replicas: model.replicas.map((replica) => resolveReplica(replica, model)),
  }
}

function resolveReplica(written: FileModel['replicas'][number], model: FileModel): ReplicaSource {
  const replica = typeof written === 'string' ? { url: written } : written
  const rest = { ...(replica.key && { key: replica.key }), engine: replica.engine ?? model.engine }
  if (replica.url !== undefined) return { kind: 'url', url: replica.url, ...rest }
  if (replica.dns === undefined || replica.port === undefined)
    throw new RangeError('a replica was not checked')
  return { kind: 'dns', host: replica.dns, port: replica.port, ...rest }
}

function resolveClasses(file: ConfigFile, names: DeclaredNames): Pick<Config, 'classes' | 'classesByModel'> {
  const classes: Record<string, SloClass> = {}
  const classesByModel: Record<string, Record<string, SloClass>> = {}
  for (const [name, { models, ...targets }] of Object.entries(file.classes)) {
    classes[name] = resolveClass(name, targets)
    if (models === undefined) continue
    const overrides = Object.entries(models).map(([model, override]) => [
      modelBehind(model, names),
      resolveClass(name, mergeTargets(targets, override)),
    ])
    classesByModel[name] = Object.fromEntries(overrides)
  }
  classes[BEST_EFFORT] ??= resolveClass(BEST_EFFORT, {})
  return { classes, classesByModel }
}

function resolveProduct(
  { name, match, class: className }: ConfigFile['products'][number],
  names: DeclaredNames,
): ProductRule {
  const headers = Object.entries(match.header ?? {}).map(([header, value]) => [header.toLowerCase(), value])
  return {
    name,
    match: {
      ...(match.header !== undefined && { header: Object.fromEntries(headers) }),
      ...(match.path !== undefined && { path: match.path }),
      ...(match.tenant !== undefined && { tenant: match.tenant }),
      ...(match.model !== undefined && { model: modelBehind(match.model, names) }),
    },
    class: className,
  }
}

function resolveAuth({ auth }: ConfigFile): AuthConfig {
  if (auth === 'none') return { kind: 'none' }
  if (auth === undefined || auth === 'keys') return { kind: 'keys' }
  return { kind: 'header', header: auth.header.toLowerCase(), trusted: auth.trusted }
}

function resolveTenant(
  tenant: ConfigFile['tenants'][number],
  instances: number,
  names: DeclaredNames,
): TenantConfig {
  const { concurrent, requests, tokens } = tenant.limits
  // Each instance enforces its share alone, so a limit of the fleet is divided here, once.
  const limits: TenantLimits = {
    ...(concurrent !== undefined && { concurrentRequests: Math.max(1, Math.floor(concurrent / instances)) }),
    ...(requests !== undefined && { requestsPerSec: requests / instances }),
    ...(tokens !== undefined && { tokensPerMin: Math.round((tokens * 60e6) / instances) / 1e6 }),
  }
  return {
    name: tenant.name,
    keySha256: tenant.key_sha256,
    ...(tenant.classes !== undefined && { classes: tenant.classes }),
    ...(tenant.models !== undefined && {
      models: [...new Set(tenant.models.map((model) => modelBehind(model, names)))],
    }),
    share: tenant.share,
    limits,
    scheduling: tenant.scheduling,
  }
}

/** Aliases become the model's name; an adapter stays itself, since it is less than its model. */
function modelBehind(name: string, names: DeclaredNames): string {
  return names.adapters.has(name) ? name : (names.models.get(name) ?? name)
}
