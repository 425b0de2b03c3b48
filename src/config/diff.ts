/** Says what differs between two configurations, for the log: one line per change, no secrets. */
import type { Config, ReplicaSource } from './config.ts'
import { canonicalJson } from './digest.ts'

type Tree = Readonly<Record<string, unknown>>

/** Keys whose values are never shown. */
const HIDDEN = new Set(['token', 'key', 'keySha256'])

/** Lines such as `models.llama.replicas: + http://10.0.0.12:8000`; empty when both mean the same. */
export function diffConfigs(before: Config, after: Config): readonly string[] {
  return diffTrees('', treeOf(before), treeOf(after))
}

/** True when both mean exactly the same, secrets included. */
export function sameConfig(a: Config, b: Config): boolean {
  return canonicalJson(a) === canonicalJson(b)
}

/** Lists with names become mappings, so that an entry that moved is not a change of all its neighbours. */
function treeOf({ digest: _, ...config }: Config): Tree {
  const models = byName(config.models, ({ replicas, ...model }) => ({
    ...model,
    replicas: replicas.map(describeReplica),
    keys: replicas.map(({ key }) => key ?? ''),
  }))
  const products = config.products.map(
    ({ name, match, class: className }) => `${name}: ${canonicalJson(match)} → ${className}`,
  )
  return { ...config, models, products, tenants: byName(config.tenants, (tenant) => ({ ...tenant })) }
}

function byName<T extends { readonly name: string }>(
  entries: readonly T[],
  describe: (entry: T) => Tree,
): Tree {
  return Object.fromEntries(entries.map((entry) => [entry.name, describe(entry)]))
}

function describeReplica(replica: ReplicaSource): string {
  const address = replica.kind === 'url' ? replica.url : `dns ${replica.host}:${replica.port}`
  return replica.engine === 'vllm' ? address : `${address} (${replica.engine})`
}

function diffTrees(path: string, before: Tree, after: Tree): readonly string[] {
  const keys = [...new Set([...Object.keys(before), ...Object.keys(after)])]
  return keys.flatMap((key) => diffValues(path === '' ? key : `${path}.${key}`, key, before[key], after[key]))
}

function diffValues(path: string, key: string, before: unknown, after: unknown): readonly string[] {
  if (canonicalJson(before) === canonicalJson(after)) return []
  if (HIDDEN.has(key) || key === 'keys') return [`${path}: changed`]
  if (isTree(before) && isTree(after)) return diffTrees(path, before, after)
  if (Array.isArray(before) && Array.isArray(after)) return diffLists(path, before, after)
  if (before === undefined) return [`${path}: +${isTree(after) ? '' : ` ${write(after)}`}`]
  if (after === undefined) return [`${path}: -${isTree(before) ? '' : ` ${write(before)}`}`]
  return [`${path}: ${write(before)} → ${write(after)}`]
}

function diffLists(path: string, before: readonly unknown[], after: readonly unknown[]): readonly string[] {
  const [old, now] = [before.map(write), after.map(write)]
  const gone = old.filter((item) => !now.includes(item)).map((item) => `${path}: - ${item}`)
  const come = now.filter((item) => !old.includes(item)).map((item) => `${path}: + ${item}`)
  return gone.length + come.length > 0 ? [...gone, ...come] : [`${path}: other order: ${now.join(', ')}`]
}

const isTree = (value: unknown): value is Tree =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const write = (value: unknown): string =>
  typeof value === 'string' ? value : canonicalJson(value, () => '…')
