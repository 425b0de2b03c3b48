/** Checks who may call and which rule names their class: auth, tenants, products, passthrough. */
import { type CheckContext, checkClassName, checkModelName, checkUnique, checkWholeModel } from './checks.ts'
import type { Path } from './problem.ts'
import type { FileProduct, FileTenant } from './schema.ts'
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
  const { tenants } = context.file
  checkUnique(
    context,
    'tenant',
    tenants.map(({ name }, index) => ({ path: ['tenants', index, 'name'], value: name })),
  )
  checkKeyOwners(context)
  for (const [index, tenant] of tenants.entries()) {
    const at: Path = ['tenants', index]
    if (tenant.name === NO_TENANT) {
      const message = `${NO_TENANT} is what callers without key are called`
      context.error([...at, 'name'], message, 'choose another name')
    }
    for (const [position, name] of (tenant.classes ?? []).entries())
      checkClassName(context, [...at, 'classes', position], name)
    for (const [position, name] of (tenant.models ?? []).entries())
      checkModelName(context, [...at, 'models', position], name)
    checkHasKey(context, at, tenant)
    checkConcurrent(context, at, tenant)
  }
}

/** Each key names one tenant. */
function checkKeyOwners(context: CheckContext): void {
  const owners = new Map<string, string>()
  for (const [index, tenant] of context.file.tenants.entries()) {
    for (const [position, hash] of tenant.key_sha256.entries()) {
      const owner = owners.get(hash)
      if (owner !== undefined) {
        const path = ['tenants', index, 'key_sha256', position]
        context.error(path, `this key belongs to ${shown(owner)} already`, 'a key names one tenant')
      }
      owners.set(hash, tenant.name)
    }
  }
}

function checkHasKey(context: CheckContext, at: Path, { name }: FileTenant): void {
  const { auth } = context.file
  if (auth !== undefined && auth !== 'keys') return
  const written = context.written([...at, 'key_sha256'])
  // A key that is there and wrong is a problem of its own, told already.
  if (written !== undefined && !(Array.isArray(written) && written.length === 0)) return
  context.error(at, `the tenant ${shown(name)} has no key`, 'run `sluice key` and add its key_sha256')
}

function checkConcurrent(context: CheckContext, at: Path, { limits: { concurrent } }: FileTenant): void {
  const { instances } = context.file
  if (concurrent === undefined || concurrent >= instances) return
  const message = `${concurrent} concurrent requests can not be divided by ${instances} instances; each allows one`
  context.warn([...at, 'limits', 'concurrent'], message, `write at least ${instances}`)
}

function checkProducts(context: CheckContext): void {
  const { products } = context.file
  checkUnique(
    context,
    'product',
    products.map(({ name }, index) => ({ path: ['products', index, 'name'], value: name })),
  )
  const seen = new Map<string, string>()
  for (const [index, product] of products.entries()) {
    const at: Path = ['products', index]
    const { match } = product
    checkClassName(context, [...at, 'class'], product.class)
    if (match.model !== undefined) checkWholeModel(context, [...at, 'match', 'model'], match.model)
    if (product.name === NO_PRODUCT) {
      const message = `${NO_PRODUCT} is what requests without product are called`
      context.error([...at, 'name'], message, 'choose another name')
    }
    const conditions = JSON.stringify([match.header, match.path, match.tenant, match.model])
    if (Object.keys(match).length === 0) {
      context.error([...at, 'match'], 'this matches every request', 'name a condition, or use default_class')
    } else if (seen.has(conditions)) {
      const message = `this never matches: ${shown(seen.get(conditions))} above has the same conditions`
      context.warn([...at, 'match'], message, 'the first match wins; remove one of them')
    }
    seen.set(conditions, product.name)
    checkProductTenant(context, [...at, 'match', 'tenant'], product)
  }
}

function checkProductTenant(context: CheckContext, path: Path, product: FileProduct): void {
  const named = product.match.tenant
  if (named === undefined) return
  const { auth, tenants } = context.file
  const tenant = tenants.find(({ name }) => name === named)
  if (!context.names.tenants.includes(named)) {
    context.error(path, `there is no tenant ${shown(named)}`, didYouMean(named, context.names.tenants))
  } else if (auth === 'none') {
    context.warn(path, 'with auth: none no request has a tenant', 'this product never matches')
  } else if (tenant?.classes !== undefined && !tenant.classes.includes(product.class)) {
    const message = `the tenant ${shown(tenant.name)} may not use the class ${shown(product.class)}`
    context.warn(path, message, `its requests will get ${tenant.classes[0]}; add the class to the tenant`)
  }
}
