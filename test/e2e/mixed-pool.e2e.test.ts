/** Engines of several kinds behind one model: each gets what it understands, and nothing that it does not have. */
import { afterEach, describe, expect, it } from 'vitest'
import { type Rig, type RigOptions, type SettingsChange, sloClass, startRig } from '../support/edge-rig.ts'

let rig: Rig | undefined
async function start(options: RigOptions): Promise<Rig> {
  rig = await startRig(options)
  return rig
}
afterEach(async () => {
  await rig?.close()
  rig = undefined
})

const VLLM_BESIDE_TGI = { engines: 2, engineKind: ['vllm', 'tgi'] } as const
const GENERATE = { inputs: 'Hello', parameters: { max_new_tokens: 2 } }

describe('a route that not every engine of the pool has', () => {
  it('is sent only to those that have it, however busy', async () => {
    const { engines } = await start(VLLM_BESIDE_TGI)
    const [vllm, tgi] = engines
    for (let index = 0; index < 3; index += 1) {
      const client = rig?.client().send({ path: '/generate', body: GENERATE })
      const exchange = await tgi?.nextRequest()
      expect(exchange?.path).toBe('/generate')
      if (index < 2) continue
      exchange?.respondJson(200, { generated_text: 'x' })
      await client?.waitComplete()
    }
    rig?.client().send({ path: '/v1/messages', body: { model: 'tiny', max_tokens: 1, messages: [] } })
    expect((await vllm?.nextRequest())?.path).toBe('/v1/messages')
    expect(tgi?.openExchanges).toBe(2)
    expect(vllm?.requests.map(({ path }) => path)).toEqual(['/v1/messages'])
  })

  it('is not rerouted to one that has it not', async () => {
    const { engines } = await start(VLLM_BESIDE_TGI)
    const client = rig?.client().send({ path: '/generate', body: GENERATE })
    ;(await engines[1]?.nextRequest())?.reset()
    await client?.waitStatus(502)
    expect(engines[0]?.requests).toEqual([])
  })

  it('is a 404 that names it when no engine has it', async () => {
    await start({ engineKind: 'vllm' })
    const client = await rig?.client().send({ path: '/generate', body: GENERATE }).waitStatus(404)
    expect(client?.json).toMatchObject({
      error: 'no engine of the model "tiny" has /generate',
      error_type: 'invalid_request_error',
    })
    expect(rig?.rejections).toEqual(['unknown_route'])
  })
})

describe('a reroute between kinds', () => {
  it('takes a TGI that is full inside its 200 for full, and vLLM answers', async () => {
    const { engines } = await start({ engines: 2, engineKind: ['tgi', 'vllm'] })
    const client = rig?.chat({ priority: 3, rid: 'mine' })
    const refused = await engines[0]?.nextRequest()
    refused
      ?.head()
      .frame({ error: { message: 'Model is overloaded', http_status_code: 422 } })
      .done()
    const taken = await engines[1]?.nextRequest()
    // Each engine gets the body that is right for it.
    expect(refused?.json).toMatchObject({ priority: 3 })
    expect(taken?.json.priority).toBeUndefined()
    taken?.head().role().token(' hello').done()
    await client?.waitComplete()
    expect(client?.text).not.toContain('overloaded')
    expect(rig?.bounces).toEqual(['r0 engine_full'])
    expect(rig?.told).toEqual(['success'])
  })

  it('follows a generation that TGI broke, which it tells as a 424 or as a 422 inside a stream', async () => {
    const { engines } = await start({
      engines: 2,
      engineKind: ['tgi', 'tgi'],
      gate: { rerouteBudgetRatio: 1 },
    })
    const whole = rig?.chat({ stream: false })
    const failed = { error: 'Request failed during generation: boom', error_type: 'generation' }
    ;(await engines[0]?.nextRequest())?.respondJson(424, failed)
    ;(await engines[1]?.nextRequest())?.respondJson(200, { choices: [] })
    await whole?.waitStatus(200)
    const streamed = rig?.chat()
    const error = { message: 'Request failed during generation: boom', http_status_code: 422 }
    ;(await engines[0]?.nextRequest())?.head().frame({ error }).done()
    ;(await engines[1]?.nextRequest())?.head().token(' hello').done()
    await streamed?.waitComplete()
    expect(rig?.bounces).toEqual(['r0 engine_error', 'r0 engine_error'])
  })
})

describe('TGI', () => {
  it('counts the tokens of a whole answer that tells them in its headers alone', async () => {
    await start({ engineKind: 'tgi' })
    const client = rig?.client().send({ path: '/generate', body: GENERATE })
    const exchange = await rig?.engine.nextRequest()
    const headers = { 'x-prompt-tokens': '9', 'x-generated-tokens': '5' }
    exchange?.respondJson(200, { generated_text: ' a b c d e' }, headers)
    await client?.waitComplete()
    await rig?.settled()
    expect(rig?.settlement).toMatchObject({ promptTokens: 9, outputTokens: 5, countedBy: 'usage' })
  })
})

describe('the urgency of a class', () => {
  const model = { name: 'tiny', aliases: [], servedName: 'tiny', adapters: [] }
  const classes = { voice: sloClass('voice', { ttftMs: 60_000, weight: 4 }), batch: sloClass('batch') }
  const settings = (priorityScheduling: boolean): SettingsChange => ({
    models: [{ ...model, priorityScheduling }],
    classes,
    defaultClass: 'voice',
  })
  async function priorityAt(kind: 'vllm' | 'sglang' | 'tgi', on: boolean, slo: string): Promise<unknown> {
    const { engine } = await start({ engineKind: kind, settings: settings(on) })
    rig?.chat({ priority: 7 }, { 'x-slo-class': slo })
    const { json } = await engine.nextRequest()
    await rig?.close()
    rig = undefined
    return json.priority
  }

  it('reaches each engine in its own direction, and only engines that order by it', async () => {
    expect(await priorityAt('vllm', true, 'voice')).toBe(-40)
    expect(await priorityAt('sglang', true, 'voice')).toBe(40)
    expect(await priorityAt('vllm', true, 'batch')).toBeUndefined()
    expect(await priorityAt('vllm', false, 'voice')).toBeUndefined()
    // TGI has no such field: what the client sends is nobody's.
    expect(await priorityAt('tgi', true, 'voice')).toBe(7)
  })
})
