/** Finds the configured model behind the name that a client asks for. */
import type { PoolId } from '../core/request.ts'
import { ProxyError } from '../errors.ts'
import { isObject, stringOf } from './json.ts'
import type { ModelSettings, TenantSettings } from './settings.ts'

export interface ResolvedModel {
  readonly model: ModelSettings
  /** What the engine is to be asked for. */
  readonly engineName: string
  /** The adapter's name, or empty: caches of different adapters share nothing. */
  readonly adapter: string
}

/** The name that stands for "any", for requests that name no model. */
const DEFAULT_NAME = 'default'

export class ModelIndex {
  readonly #byName = new Map<string, ResolvedModel>()
  readonly #only: ResolvedModel | undefined

  constructor(models: readonly ModelSettings[]) {
    for (const model of models) {
      const own = { model, engineName: model.servedName, adapter: '' }
      for (const name of [model.name, ...model.aliases]) this.#byName.set(name, own)
      for (const adapter of model.adapters) {
        this.#byName.set(adapter, { model, engineName: adapter, adapter })
      }
    }
    const [first] = models
    this.#only = models.length === 1 && first !== undefined ? this.#byName.get(first.name) : undefined
  }

  /** Every name that this tenant may ask for in the pools that `served` lets pass, in the order of the configuration. */
  namesFor(tenant: TenantSettings, served: (pool: PoolId) => boolean = () => true): readonly string[] {
    return [...this.#byName]
      .filter(([, resolved]) => mayUse(tenant, resolved) && served(resolved.model.name))
      .map(([name]) => name)
  }

  /** The pool of a body that may or may not be JSON with a model; without one, the default or the first pool. */
  poolOf(body: Buffer, tenant: TenantSettings): PoolId {
    const asked = modelIn(body)
    if (asked !== undefined) return this.resolve(asked, tenant).model.name
    const allowed = this.namesFor(tenant)
    const name = allowed.includes(DEFAULT_NAME) ? DEFAULT_NAME : allowed[0]
    if (name === undefined) throw new ProxyError('forbidden', 'this key may not use any model')
    return this.resolve(name, tenant).model.name
  }

  /** Throws `model_not_found`, `malformed` (no name, several models) or `forbidden`. */
  resolve(asked: string | undefined, tenant: TenantSettings): ResolvedModel {
    const found =
      asked === undefined ? (this.#byName.get(DEFAULT_NAME) ?? this.#only) : this.#byName.get(asked)
    if (found === undefined) {
      if (asked === undefined)
        throw new ProxyError('malformed', '`model` is missing and several are served here')
      throw new ProxyError('model_not_found', `the model ${JSON.stringify(asked)} does not exist here`)
    }
    if (!mayUse(tenant, found)) {
      throw new ProxyError(
        'forbidden',
        `this key may not use the model ${JSON.stringify(asked ?? found.model.name)}`,
      )
    }
    return found
  }
}

function modelIn(body: Buffer): string | undefined {
  try {
    const json: unknown = JSON.parse(body.toString('utf8'))
    return isObject(json) ? stringOf(json.model) : undefined
  } catch {
    // Not JSON: whatever it is, the engine knows.
    return undefined
  }
}

/** Whether the tenant's list names the model itself or the adapter. */
function mayUse(tenant: TenantSettings, { model, adapter }: ResolvedModel): boolean {
  if (tenant.models === undefined) return true
  return tenant.models.includes(model.name) || (adapter !== '' && tenant.models.includes(adapter))
}
