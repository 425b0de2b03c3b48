/** Checks who may call and which rule names their class: auth, tenants, products, passthrough. */
import { type CheckContext, checkClassName, checkModelName, checkUnique, checkWholeModel } from './checks.ts'
import { didYouMean } from './suggest.ts'
import { shown } from './units.ts'

/** Routes that Sluice judges, or answers itself; relaying them unjudged would go round it. */
const OWN_ROUTES = [
  '/v1/chat/completions',
  '/v1/completions',
  '/v1/responses',
  '/v1/messages',
  '/v1/embeddings',
  '/v1/models',
  '/generate',
  '/generate_stream',
  '/tokenize',
  '/detokenize',
  '/health',
  '/readyz',
]

/** Labels that requests of no product and of no tenant carry. */
const NO_PRODUCT = 'none'
const NO_TENANT = 'anonymous'

export function checkAccess(context: CheckContext): void {
  checkAuth(context)
  checkTenants(context)
  checkProducts(context)
  checkUnique(
    context,
    'path',
    context.file.passthrough.map((value, index) => ({ path: ['passthrough', index], value })),
  )
  for (const [index, route] of context.file.passthrough.entries()) {
    const at = ['passthrough', index]
    if (OWN_ROUTES.includes(route))
      context.error(at, `${route} is a route of Sluice itself`, 'remove it here')
    if (route.split('/').includes('..'))
      context.error(at, `${shown(route)} leads upwards`, 'write the path as it is')
  }
}

function checkAuth(context: CheckContext): void {
  const { auth, tenants } = context.file
  if (context.names.tenants.length === 0 && auth === undefined) {
    context.error(
      [],
      'it is not said who may call',
      'list tenants (`sluice key` makes keys), or write auth: none to let in everyone who reaches the port',
    )
  }
  if (auth === 'keys' && context.names.tenants.length === 0) {
    context.error(['auth'], 'auth: keys without tenants lets nobody in', 'list tenants, or write auth: none')
  }
  if (auth === 'none' && tenants.length > 0) {
    context.warn(
      ['auth'],
      'with auth: none the tenants below bind nobody',
      'write auth: keys, or remove the tenants',
    )
  }
  if (typeof auth === 'object') {
    for (const [index, network] of auth.trusted.entries()) {
      if (!network.endsWith('/0')) continue
      const message = `${network} is the whole world: anyone may claim to be any tenant`
      context.warn(['auth', 'trusted', index], message, 'name the network of the gateway')
    }
  }
}

function checkTenants(context: CheckContext): void {
  const { auth, tenants } = context.file
  const at = (index: number, ...rest: (string | number)[]) => ['tenants', index, ...rest]
  checkUnique(
    context,
    'tenant',
    tenants.map(({ name }, index) => ({ path: at(index, 'name'), value: name })),
  )
  const owners = new Map<string, string>()
  for (const [index, tenant] of tenants.entries()) {
    if (tenant.name === NO_TENANT) {
      context.error(
        at(index, 'name'),
        `${NO_TENANT} is what callers without key are called`,
        'choose another name',
      )
    }
    for (const [position, hash] of tenant.key_sha256.entries()) {
      const owner = owners.get(hash)
      const path = at(index, 'key_sha256', position)
      if (owner !== undefined)
        context.error(path, `this key belongs to ${shown(owner)} already`, 'a key names one tenant')
      owners.set(hash, tenant.name)
    }
    for (const [position, name] of (tenant.classes ?? []).entries()) {
      checkClassName(context, at(index, 'classes', position), name)
    }
    for (const [position, name] of (tenant.models ?? []).entries()) {
      checkModelName(context, at(index, 'models', position), name)
    }
    const byKeys = auth === undefined || auth === 'keys'
    const written = context.written(at(index, 'key_sha256'))
    if (byKeys && (written === undefined || (Array.isArray(written) && written.length === 0))) {
      context.error(
        at(index),
        `the tenant ${shown(tenant.name)} has no key`,
        'run `sluice key` and add its key_sha256',
      )
    }
    const { concurrent } = tenant.limits
    const { instances } = context.file
    if (concurrent !== undefined && concurrent < instances) {
      const message = `${concurrent} concurrent requests can not be divided by ${instances} instances; each allows one`
      context.warn(at(index, 'limits', 'concurrent'), message, `write at least ${instances}`)
    }
  }
}

function checkProducts(context: CheckContext): void {
  const { auth, products, tenants } = context.file
  checkUnique(
    context,
    'product',
    products.map(({ name }, index) => ({ path: ['products', index, 'name'], value: name })),
  )
  const seen = new Map<string, string>()
  for (const [index, product] of products.entries()) {
    const at = ['products', index]
    const { match } = product
    checkClassName(context, [...at, 'class'], product.class)
    if (match.model !== undefined) checkWholeModel(context, [...at, 'match', 'model'], match.model)
    if (product.name === NO_PRODUCT) {
      context.error(
        [...at, 'name'],
        `${NO_PRODUCT} is what requests without product are called`,
        'choose another name',
      )
    }
    const conditions = JSON.stringify([match.header, match.path, match.tenant, match.model])
    if (Object.keys(match).length === 0) {
      context.error([...at, 'match'], 'this matches every request', 'name a condition, or use default_class')
    } else if (seen.has(conditions)) {
      const message = `this never matches: ${shown(seen.get(conditions))} above has the same conditions`
      context.warn([...at, 'match'], message, 'the first match wins; remove one of them')
    }
    seen.set(conditions, product.name)
    if (match.tenant === undefined) continue
    const path = [...at, 'match', 'tenant']
    const tenant = tenants.find(({ name }) => name === match.tenant)
    if (!context.names.tenants.includes(match.tenant)) {
      const message = `there is no tenant ${shown(match.tenant)}`
      context.error(path, message, didYouMean(match.tenant, context.names.tenants))
    } else if (auth === 'none') {
      context.warn(path, 'with auth: none no request has a tenant', 'this product never matches')
    } else if (tenant?.classes !== undefined && !tenant.classes.includes(product.class)) {
      const message = `the tenant ${shown(tenant.name)} may not use the class ${shown(product.class)}`
      context.warn(path, message, `its requests will get ${tenant.classes[0]}; add the class to the tenant`)
    }
  }
}
