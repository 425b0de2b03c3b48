/** Finds the configured model behind the name that a client asks for. */
import { ProxyError } from '../errors.ts'
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

  /** Every name that may be asked for, with what is behind it. */
  names(): ReadonlyMap<string, ResolvedModel> {
    return this.#byName
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

/** Whether the tenant's list names the model itself or the adapter. */
export function mayUse(tenant: TenantSettings, { model, adapter }: ResolvedModel): boolean {
  if (tenant.models === undefined) return true
  return tenant.models.includes(model.name) || (adapter !== '' && tenant.models.includes(adapter))
}
