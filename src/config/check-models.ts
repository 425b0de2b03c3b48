/** Checks models and replicas: one meaning per name, one engine per URL. */
import type { EngineKind } from '../engines/adapter.ts'
import { type CheckContext, checkUnique } from './checks.ts'
import type { Path } from './problem.ts'
import type { FileModel } from './schema.ts'
import { didYouMean } from './suggest.ts'
import { shown } from './units.ts'

type FileReplica = Exclude<FileModel['replicas'][number], string>

export function checkModels(context: CheckContext): void {
  for (const { path, name, takenBy } of context.names.clashes) {
    const same = takenBy === name ? 'a model of that name' : `the model ${shown(takenBy)}`
    context.error(
      path,
      `${shown(name)} already stands for ${same}`,
      'every name, alias and adapter needs one meaning',
    )
  }
  const engines = new Map<string, { readonly kind: EngineKind; readonly key: string | undefined }>()
  for (const [position, model] of context.file.models.entries()) {
    const at: Path = ['models', position]
    const replicas = model.replicas.map((replica, index) => ({
      path: [...at, 'replicas', index],
      replica: typeof replica === 'string' ? { url: replica } : replica,
    }))
    for (const { path, replica } of replicas) checkReplica(context, path, replica)
    checkUnique(
      context,
      'replica',
      replicas.flatMap(({ path, replica }) => {
        const value = replica.url ?? (replica.dns && `${replica.dns}:${replica.port}`)
        return value === undefined ? [] : [{ path, value }]
      }),
    )
    for (const { path, replica } of replicas) checkShared(context, engines, path, replica, model)
    checkProfile(context, at, model)
  }
}

function checkReplica(context: CheckContext, path: Path, replica: FileReplica): void {
  const { url, dns, port } = replica
  const forms = 'write { url: http://10.0.0.11:8000 } or { dns: vllm.llm.svc, port: 8000 }'
  if (url === undefined && dns === undefined) context.error(path, 'this replica has no address', forms)
  if (url !== undefined && dns !== undefined) {
    context.error([...path, 'dns'], 'a replica has either url or dns', forms, 'key')
  }
  if (url !== undefined && port !== undefined) {
    context.error([...path, 'port'], 'port belongs to dns', 'put the port into the url', 'key')
  }
  if (dns !== undefined && port === undefined) {
    context.error([...path, 'dns'], 'dns needs a port', `write { dns: ${dns}, port: 8000 }`)
  }
}

/** A URL may serve several models, but it is one engine with one key. */
function checkShared(
  context: CheckContext,
  engines: Map<string, { readonly kind: EngineKind; readonly key: string | undefined }>,
  path: Path,
  replica: FileReplica,
  model: FileModel,
): void {
  if (replica.url === undefined) return
  const engine = { kind: replica.engine ?? model.engine, key: replica.key || undefined }
  const before = engines.get(replica.url)
  engines.set(replica.url, before ?? engine)
  if (before !== undefined && before.kind !== engine.kind) {
    const message = `${shown(replica.url)} is ${before.kind} in another model and ${engine.kind} here`
    context.error(path, message, 'a URL is one engine: give both the same')
  } else if (before !== undefined && before.key !== engine.key) {
    context.error(
      path,
      `${shown(replica.url)} has another key in another model`,
      'a URL has one key: give both the same',
    )
  }
}

function checkProfile(context: CheckContext, at: Path, model: FileModel): void {
  const { profiles } = context
  if (model.profile === undefined || profiles === undefined || profiles.ids.includes(model.profile)) return
  const suggestion = didYouMean(model.profile, profiles.ids) ?? 'leave it out, and Sluice learns from nothing'
  context.error([...at, 'profile'], `there is no profile ${shown(model.profile)}`, suggestion)
}
