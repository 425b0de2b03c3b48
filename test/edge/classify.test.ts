import { describe, expect, it } from 'vitest'
import { classify, NO_PRODUCT, steering } from '../../src/edge/classify.ts'
import type { TenantSettings } from '../../src/edge/settings.ts'
import { edgeSettings, sloClass } from '../support/edge-rig.ts'

const tenant = (rest: Partial<TenantSettings> = {}): TenantSettings => ({
  name: 'acme',
  keySha256: [],
  scheduling: false,
  ...rest,
})
const settings = edgeSettings({
  classes: {
    chat: sloClass('chat', { ttftMs: 500, tpotMs: 50 }),
    voice: sloClass('voice', { ttftMs: 300 }),
    batch: sloClass('batch'),
  },
  classesByModel: { chat: { big: sloClass('chat', { ttftMs: 900 }) } },
  defaultClass: 'chat',
  products: [
    { name: 'bot', match: { header: { 'X-Product': 'bot' } }, class: 'voice' },
    { name: 'ide', match: { path: '/v1/completions', tenant: 'acme' }, class: 'batch' },
  ],
})
const subject = (rest: Partial<Parameters<typeof classify>[1]> = {}) => ({
  headers: {},
  path: '/v1/chat/completions',
  tenant: tenant(),
  model: 'tiny',
  ...rest,
})

describe('a class', () => {
  it('comes from the header, else from the first matching product, else from the default', () => {
    const bot = { 'x-product': 'bot' }
    expect(classify(settings, subject())).toMatchObject({ slo: { name: 'chat' }, product: NO_PRODUCT })
    expect(classify(settings, subject({ headers: bot }))).toMatchObject({
      slo: { name: 'voice' },
      product: 'bot',
    })
    const asked = classify(settings, subject({ headers: { ...bot, 'x-slo-class': 'batch' } }))
    expect(asked).toMatchObject({ slo: { name: 'batch' }, product: 'bot' })
  })

  it('needs every condition of a product', () => {
    const path = '/v1/completions'
    expect(classify(settings, subject({ path })).product).toBe('ide')
    expect(classify(settings, subject({ path, tenant: tenant({ name: 'other' }) })).product).toBe(NO_PRODUCT)
  })

  it('that nobody configured counts as not asked for', () => {
    const headers = { 'x-slo-class': '__proto__' }
    expect(classify(settings, subject({ headers })).slo.name).toBe('chat')
  })

  it('that the tenant may not use becomes its first one, and says so', () => {
    const own = tenant({ classes: ['batch', 'voice'] })
    const clamped = classify(settings, subject({ tenant: own }))
    expect(clamped).toMatchObject({ slo: { name: 'batch' }, clampedFrom: 'chat' })
    expect(() => classify(settings, subject({ tenant: tenant({ classes: [] }) }))).toThrow(/any class/)
  })

  it('is the one of the model where it has its own', () => {
    expect(classify(settings, subject({ model: 'big' })).slo.ttftMs).toBe(900)
  })
})

describe('steering', () => {
  it('takes either name of the header and nothing tighter than the tenant could have by class', () => {
    const at = (headers: Record<string, string>, own = tenant()) =>
      steering(settings, subject({ headers, tenant: own }))
    expect(at({ 'x-slo-ttft-ms': '800' })).toEqual({ steerTtftMs: 800 })
    expect(at({ 'x-llm-d-slo-tpot-ms': '70' })).toEqual({ steerTpotMs: 70 })
    expect(at({ 'x-slo-ttft-ms': '1' })).toEqual({ steerTtftMs: 300 })
    expect(at({ 'x-slo-ttft-ms': '1' }, tenant({ classes: ['chat'] }))).toEqual({ steerTtftMs: 500 })
    expect(at({ 'x-slo-ttft-ms': '1' }, tenant({ classes: ['batch'] }))).toEqual({})
    expect(at({ 'x-slo-ttft-ms': 'soon', 'x-slo-tpot-ms': '-4' })).toEqual({})
  })
})
