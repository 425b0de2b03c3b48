/** The console's server side, asked in memory: the page as it comes, its stream, and who may see decisions. */
import { describe, expect, it } from 'vitest'
import { MAX_VIEWERS } from '../../src/admin/console/live.ts'
import { offerOf, settlementOf } from '../slo/facts.ts'
import { serveAdmin } from '../support/admin-stage.ts'
import { until, within } from '../support/deadline.ts'
import { RawClient } from '../support/raw-client.ts'
import { chat, decisionOf, good, replicaOf, shed } from '../telemetry/rig.ts'
import { setUp } from './admin-rig.ts'

const TOKEN = 'the-admin-token'
const FORM = { 'content-type': 'application/x-www-form-urlencoded' }

/** Reads a stream of events as a browser does, one message at a time. */
function reader(response: Response) {
  const source = response.body?.getReader()
  if (source === undefined) throw new Error('no body')
  const text = new TextDecoder()
  return {
    /** The regions of the next message. */
    async next(): Promise<Record<string, string>> {
      for (;;) {
        const { value, done } = await within(source.read(), 'a message of the console')
        if (done) throw new Error('the stream has ended')
        const line = /^data: (.*)\n\n$/.exec(text.decode(value))?.[1]
        if (line !== undefined) return JSON.parse(line) as Record<string, string>
      }
    },
    /** What comes before any message. */
    skip: async () => text.decode((await within(source.read(), 'the first bytes')).value),
    leave: () => source.cancel(),
  }
}

describe('the page', () => {
  it('shows the main numbers without a script, names escaped', async () => {
    const { get, observer, parts } = setUp()
    observer.onSettled(good())
    parts.replicas = [replicaOf({ name: '<script>alert(1)</script>' })]
    const text = await (await get('/')).text()
    expect(text).toContain('<b>100 %</b>')
    expect(text).toContain('<th scope="row">chat</th>')
    expect(text).toContain('&lt;script&gt;alert')
    expect(text.match(/<script/g)).toHaveLength(1)
    expect(text).toContain('<noscript><meta http-equiv="refresh"')
  })

  it('lets nothing in from elsewhere, and no inline script or style', async () => {
    const { get } = setUp()
    const answer = await get('/')
    const policy = answer.headers.get('content-security-policy') ?? ''
    expect(policy).toContain("default-src 'none'")
    expect(policy).not.toContain('unsafe')
    const text = await answer.text()
    expect(text).not.toMatch(/ style="| on[a-z]+="|https?:\/\//)
    for (const path of ['/console.css', '/console.js', '/console.svg']) {
      expect(text).toContain(`"${path}"`)
      expect((await get(path)).status).toBe(200)
    }
    expect((await get('/console.css')).headers.get('content-type')).toContain('text/css')
  })

  it('stands without traffic and without replicas', async () => {
    const { get, parts } = setUp()
    parts.replicas = []
    for (const range of ['15m', '1h', '6h', 'nonsense']) {
      const text = await (await get(`/?range=${range}`)).text()
      expect(text).toContain('No request yet.')
      expect(text).toContain('No replica.')
      expect(text).toContain('Not ready: no model has a live replica')
      expect(text).not.toMatch(/NaN|undefined|Infinity/)
    }
  })

  it('says why in a sentence, with the numbers behind it, and no word of a prompt', async () => {
    const { get, observer } = setUp()
    observer.onDecision(decisionOf(good().offer))
    observer.onSettled(good())
    const text = await (await get('/')).text()
    expect(text).toContain('Held 2.0 ms, then sent to r1: first token predicted after 210 ms')
    expect(text).toContain('Kept its promise: first token after 300 ms, then 30 ms a token')
    expect(text).toContain('<dt>Request</dt><dd>r1</dd>')
  })

  it('shows the decisions that are asked for', async () => {
    const { get, observer } = setUp()
    observer.onSettled(good({ requestId: 'served' }))
    observer.onSettled(settlementOf({ offer: offerOf(chat, { requestId: 'late' }), ttftMs: 900 }))
    const { offer } = shed({ requestId: 'refused' })
    observer.onDecision(decisionOf(offer, { verdict: { kind: 'shed', reason: 'waiting_full' } }))
    observer.onSettled(shed({ requestId: 'refused' }))
    const ids = async (shown: string) =>
      [...(await (await get(`/?shown=${shown}`)).text()).matchAll(/id="d-(\w+)"/g)].map(([, id]) => id)
    expect((await ids('all')).sort()).toEqual(['late', 'refused', 'served'])
    expect(await ids('missed')).toEqual(['late'])
    expect(await ids('refused')).toEqual(['refused'])
  })
})

describe('the stream', () => {
  it('sends everything once and then only what has changed', async () => {
    const { get, tick, observer, clock } = setUp()
    const viewer = reader(await get('/live'))
    expect(await viewer.skip()).toMatch(/^retry: \d+\n\n$/)
    tick()
    expect(Object.keys(await viewer.next())).toContain('promises')
    observer.onSettled(good())
    tick()
    expect(Object.keys(await viewer.next()).sort()).toEqual(['decisions', 'figures', 'promises'])
    clock.nowMs += 5000
    clock.unixMs += 5000
    tick()
    const changed = await viewer.next()
    expect(Object.keys(changed)).toContain('charts')
    expect(changed).not.toHaveProperty('replicas')
    await viewer.leave()
  })

  it('draws for nobody: the timer runs from the first viewer to the last', async () => {
    const { get, timers } = setUp()
    expect(timers.size).toBe(0)
    const [one, two] = [reader(await get('/live')), reader(await get('/live?range=6h'))]
    expect(timers.size).toBe(1)
    await one.leave()
    expect(timers.size).toBe(1)
    await two.leave()
    expect(timers.size).toBe(0)
    await reader(await get('/live')).leave()
    expect(timers.size).toBe(0)
  })

  it('ends with its socket', async () => {
    const { ports } = setUp()
    const timers = new Set<() => void>()
    const served = await serveAdmin(ports, 0, (_periodMs, run) => {
      timers.add(run)
      return () => timers.delete(run)
    })
    const client = new RawClient(Number(new URL(served.url).port))
    client.send({ method: 'GET', path: '/live' })
    await client.waitText('retry: ')
    for (const run of timers) run()
    await client.waitText('"promises"')
    client.leave()
    await until(() => timers.size === 0, 'the timer to stop')
    await served.close()
  })

  it('lets a slow viewer skip drawings, and lets go of one that takes nothing', async () => {
    const { get, tick, observer, clock } = setUp()
    const slow = reader(await get('/live'))
    for (let round = 0; round < 5; round++) {
      clock.unixMs += 1000
      observer.onSettled(good({ requestId: `r${round}` }))
      tick()
    }
    await slow.skip()
    tick()
    expect((await slow.next()).decisions).toContain('id="d-r4"')
    for (let round = 0; round < 70; round++) tick()
    await expect(slow.next()).rejects.toThrow('takes nothing')
  })

  it('draws a fleet that takes long to draw less often', async () => {
    let drawMs = 8
    const { get, tick, clock } = setUp({
      waitingByClass: () => {
        clock.nowMs += drawMs
        return []
      },
    })
    const viewer = reader(await get('/live'))
    await viewer.skip()
    tick()
    await viewer.next()
    const drawsAfter = (spanMs: number) => {
      clock.nowMs += spanMs
      clock.unixMs += spanMs
      const before = clock.nowMs
      tick()
      return clock.nowMs > before
    }
    // 8 ms are half a percent of 1.6 s.
    expect([drawsAfter(1000), drawsAfter(500), drawsAfter(100)]).toEqual([false, false, true])
    drawMs = 1000
    expect([drawsAfter(1700), drawsAfter(2900), drawsAfter(100)]).toEqual([true, true, false])
    await viewer.leave()
  })

  it('turns viewers away when there are enough, and takes one again when one leaves', async () => {
    const { get } = setUp()
    const viewers = []
    for (let index = 0; index < MAX_VIEWERS; index++) viewers.push(reader(await get('/live')))
    const turnedAway = await get('/live')
    expect(turnedAway.status).toBe(503)
    expect(turnedAway.headers.get('retry-after')).toBe('10')
    expect(await turnedAway.text()).toContain('sluice top')
    await viewers[0]?.leave()
    const back = await get('/live')
    expect(back.status).toBe(200)
    await back.body?.cancel()
    for (const viewer of viewers) await viewer.leave()
  })
})

describe('decisions on the page', () => {
  const guarded = () => {
    let token = TOKEN
    const made = setUp({ token: () => token })
    made.observer.onSettled(good({ requestId: 'secret-1' }))
    return {
      ...made,
      setToken: (next: string) => {
        token = next
      },
      signIn: (offered: string, headers: Record<string, string> = {}) =>
        made.post('/-/session', { headers: { ...FORM, ...headers }, body: `token=${offered}` }),
    }
  }
  const cookieOf = (answer: Response) => answer.headers.get('set-cookie')?.split(';')[0] ?? ''

  it('are hidden, on the page, in the stream and in the numbers, until the token was shown', async () => {
    const { get, json, tick, signIn } = guarded()
    const page = await (await get('/')).text()
    expect(page).not.toContain('secret-1')
    expect(page).toContain('name="token"')
    expect((await json('/overview')).decisions).toBeNull()
    const answer = await signIn(TOKEN)
    expect([answer.status, answer.headers.get('location')]).toEqual([303, '/'])
    expect(answer.headers.get('set-cookie')).toMatch(/HttpOnly.*SameSite=Strict/)
    expect(answer.headers.get('set-cookie')).not.toContain(TOKEN)
    const headers = { cookie: cookieOf(answer) }
    expect(await (await get('/', { headers })).text()).toContain('secret-1')
    const [seeing, blind] = [reader(await get('/live', { headers })), reader(await get('/live'))]
    await Promise.all([seeing.skip(), blind.skip()])
    tick()
    expect((await seeing.next()).decisions).toContain('secret-1')
    expect((await blind.next()).decisions).not.toContain('secret-1')
    await Promise.all([seeing.leave(), blind.leave()])
  })

  it('are for tools that send the token too', async () => {
    const { json } = guarded()
    const headers = { authorization: `Bearer ${TOKEN}` }
    expect((await json('/overview', { headers })).decisions).toMatchObject([{ request_id: 'secret-1' }])
  })

  it('are refused to another token, to a made-up cookie and to other sites', async () => {
    const { get, signIn } = guarded()
    expect((await signIn('wrong')).status).toBe(401)
    expect((await signIn(TOKEN, { origin: 'http://evil.example' })).status).toBe(403)
    expect((await signIn('x'.repeat(5000))).status).toBe(400)
    const headers = { cookie: `sluice_console=${'0'.repeat(64)}` }
    expect(await (await get('/', { headers })).text()).not.toContain('secret-1')
  })

  it('are hidden again when the token changes, even in an open stream, and by signing out', async () => {
    const { get, tick, signIn, setToken } = guarded()
    const headers = { cookie: cookieOf(await signIn(TOKEN)) }
    const viewer = reader(await get('/live', { headers }))
    await viewer.skip()
    tick()
    expect((await viewer.next()).decisions).toContain('secret-1')
    setToken('another-token')
    tick()
    expect((await viewer.next()).decisions).not.toContain('secret-1')
    await viewer.leave()
    expect(await (await get('/', { headers })).text()).not.toContain('secret-1')
    expect((await signIn('')).headers.get('set-cookie')).toMatch(/^sluice_console=;.*Max-Age=0/)
  })
})
