/** Finds the model and the class that a logged request would have under a configuration. */
import { type Config, classFor } from '../config/config.ts'
import type { SloClass } from '../core/request.ts'
import { NO_PRODUCT } from '../edge/classify.ts'
import type { Placing } from '../replay/arrivals.ts'
import type { LoggedRequest } from '../replay/logged-request.ts'

type Place = NonNullable<ReturnType<Placing>>

/**
 * By the log's own names. Which header or path chose a class is not logged: where `was` (the file that was in force)
 * shows that the product or the default chose it, the new file's choice counts, else the class stays what it was.
 */
export function placingIn(config: Config, was: Config | undefined): Placing {
  const places = new Map<string, Place | undefined>()
  return (request) => {
    const { model, className, product, tenant } = request
    const key = JSON.stringify([model, className, product, tenant])
    if (!places.has(key)) places.set(key, placeOf(request, config, was))
    return places.get(key)
  }
}

function placeOf(request: LoggedRequest, config: Config, was: Config | undefined): Place | undefined {
  const model = config.models.find(({ name, aliases }) => [name, ...aliases].includes(request.model))
  if (model === undefined) return undefined
  const wanted = wantedClass(request, config, was)
  const allowed = config.tenants.find(({ name }) => name === request.tenant)?.classes
  const className = allowed === undefined || allowed.includes(wanted) ? wanted : allowed[0]
  return className === undefined ? undefined : { model: model.name, className }
}

function wantedClass(request: LoggedRequest, config: Config, was: Config | undefined): string {
  const chosen = chosenClass(config, request.product)
  if (was !== undefined && chosenClass(was, request.product) === request.className) return chosen
  return Object.hasOwn(config.classes, request.className) ? request.className : chosen
}

/** What product rules, else the default say. */
function chosenClass({ products, defaultClass }: Config, product: string): string {
  const rule = product === NO_PRODUCT ? undefined : products.find(({ name }) => name === product)
  return rule?.class ?? defaultClass
}

/** The promise that a logged request would have had. */
export function promiseIn(
  config: Config,
  placing: Placing,
): (request: LoggedRequest) => SloClass | undefined {
  return (request) => {
    const place = placing(request)
    return place === undefined ? undefined : classFor(config, place.className, place.model)
  }
}
