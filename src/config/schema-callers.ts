/** The part of the schema that says who calls: products, and tenants with what they may use. */
import { z } from 'zod'
import { count, flag, keyHash, label, modelName, path, rate, text, weight } from './fields.ts'

export const headerName = text({
  title: 'header',
  pattern: /^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/,
  say: 'a header name',
})

export const product = z.strictObject({
  name: label('a product').describe('Labels SLO metrics, so that each product can be alerted on.'),
  match: z
    .strictObject({
      header: z
        .record(headerName, text({ title: 'text', say: 'the exact value of the header' }))
        .optional()
        .describe('Headers that must all have exactly these values.'),
      path: path().optional().describe('The path of the route, e.g. `/v1/completions`.'),
      tenant: label('a tenant').optional().describe('The name of the tenant.'),
      model: modelName().optional().describe('A model, by name or alias.'),
    })
    .describe('Conditions that must all hold; at least one.'),
  class: label('a class').describe('The class of requests that match.'),
})

export const tenant = z.strictObject({
  name: label('a tenant').describe('Labels logs and metrics; products can match it.'),
  key_sha256: z
    .array(keyHash())
    .prefault([])
    .describe('sha256 of each key in hex; `sluice key` makes both. Two make rotation easy.'),
  classes: z
    .array(label('a class'))
    .min(1)
    .optional()
    .describe('Classes that it may use, preferred first. Default: every class.'),
  models: z.array(modelName()).min(1).optional().describe('Models that it may use. Default: every model.'),
  share: weight()
    .prefault(1)
    .describe('Its part of the tokens against other tenants, while all want more than there are.'),
  limits: z
    .strictObject({
      concurrent: count().optional().describe('Requests waiting or running at once.'),
      requests: rate().optional().describe('Requests, e.g. `50/s`.'),
      tokens: rate().optional().describe('Prompt tokens, e.g. `500k/min`.'),
    })
    .prefault({})
    .describe('Its own ceilings over all instances; absent ones bind nothing.'),
  scheduling: flag()
    .prefault(false)
    .describe('May set `priority` and other scheduling fields of the engine itself.'),
})
