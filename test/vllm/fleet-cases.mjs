/** What a fleet goes through: clients that leave, overload, a replica that dies in mid-stream and comes back, drain. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import OpenAI from 'openai'
import { runOpenLoop, saturate } from '../../bench/vllm/client.mjs'
import { scoreRun } from '../../bench/vllm/score.mjs'
import { makeArrivals, makeRequest, uniform, WORKLOADS } from '../../bench/vllm/workload.mjs'
import { eventually } from '../../bench/waiting.mjs'
import { ENGINE_ARGS, kill, requestsAt, start } from './servers.mjs'

const messages = [{ role: 'user', content: 'Tell me of the river and of the hills.' }]

/** The cases in order; the later ones disturb the fleet, and the last one ends Sluice. */
export function fleetCases({ base, key, model, enginePorts, engineArgs, tightClass, sluice }) {
  const client = new OpenAI({ baseURL: `${base}/v1`, apiKey: key, maxRetries: 0, timeout: 120_000 })
  const port = Number(new URL(base).port)
  const idle = () =>
    eventually('the engines to be idle', 15_000, async () => {
      const counts = await Promise.all(enginePorts.map(requestsAt))
      return counts.every((count) => count === 0)
    })
  const openLong = async (more) => {
    const request = {
      model,
      messages,
      max_tokens: 900,
      min_tokens: 900,
      ignore_eos: true,
      stream: true,
      ...more,
    }
    const { data, response } = await client.chat.completions.create(request).withResponse()
    return { stream: data, replica: response.headers.get('x-sluice-replica') }
  }

  return {
    'a client that leaves in mid-stream frees the engine': async () => {
      await idle()
      const { stream } = await openLong()
      let frames = 0
      for await (const _ of stream) if (++frames === 3) break
      await idle()
    },
    'a client that leaves before the first token frees the engine': async () => {
      const controller = new AbortController()
      const prompt = new Array(6000).fill(0).map((_, place) => 301 + ((place * 17) % 3600))
      const asked = client.completions.create(
        { model, prompt, max_tokens: 200, stream: true },
        { signal: controller.signal },
      )
      await eventually('an engine to have the request', 15_000, async () => {
        const counts = await Promise.all(enginePorts.map(requestsAt))
        return counts.some((count) => count > 0)
      })
      controller.abort()
      await assert.rejects(asked)
      await idle()
    },
    'overload at twice the capacity is refused with advice, and nothing breaks': async () => {
      const rng = uniform(5)
      const headers = { authorization: `Bearer ${key}`, 'x-slo-class': tightClass }
      const shape = WORKLOADS.mixed
      const width = enginePorts.length * (ENGINE_ARGS['max-num-seqs'] + 4)
      const calm = { authorization: headers.authorization }
      const rate = await saturate(port, () => makeRequest(shape, rng), width, 120, calm)
      await idle()
      const seen = await runOpenLoop(port, makeArrivals(shape, 2 * rate, 15, 6), 10_000, headers)
      const row = scoreRun(seen, 15, 80)
      assert.equal(row.broken, 0, 'broken answers')
      const refused = seen.filter((each) => each.outcome === 'refused')
      assert.ok(row.finishedPerSec > 0 && refused.length > 0, JSON.stringify(row))
      for (const each of refused) {
        assert.equal(each.status, 429)
        assert.ok(Number(each.headers['retry-after']) >= 1, `retry-after: ${each.headers['retry-after']}`)
      }
      await idle()
      const [capacity, good] = [rate.toFixed(1), row.goodPerSec.toFixed(1)]
      return `capacity ${capacity}/s, offered ${row.offeredPerSec.toFixed(1)}/s, good ${good}/s, ${refused.length} refused`
    },
    'a replica killed in mid-stream costs its own streams and no other request': async () => {
      await idle()
      const streams = [await openLong(), await openLong(), await openLong(), await openLong()]
      const names = new Set(streams.map((each) => each.replica))
      assert.equal(names.size, 2, `all streams went to ${[...names]}`)
      const ends = streams.map(async ({ stream, replica }) => {
        let frames = 0
        try {
          for await (const _ of stream) frames++
          return { replica, whole: true, frames }
        } catch (error) {
          return { replica, whole: false, frames, error: `${error.message}` }
        }
      })
      kill(enginePorts[0])
      const others = await Promise.allSettled(
        Array.from({ length: 12 }, () => client.chat.completions.create({ model, messages, max_tokens: 8 })),
      )
      const failed = others
        .filter((each) => each.status === 'rejected')
        .map((each) => `${each.reason.message}`)
      assert.deepEqual(failed, [])
      const all = await Promise.all(ends)
      const cut = new Set(all.filter((each) => !each.whole).map((each) => each.replica))
      const whole = new Set(all.filter((each) => each.whole).map((each) => each.replica))
      assert.equal(cut.size, 1, `cut: ${[...cut]}; ${JSON.stringify(all)}`)
      assert.ok(whole.size === 1 && !whole.has([...cut][0]), JSON.stringify(all))
      return `${all.filter((each) => !each.whole).length} of 4 streams cut, 12 of 12 others served`
    },
    'the replica comes back and takes traffic again': async () => {
      await start([enginePorts[0]], engineArgs)
      await eventually('both replicas to answer through Sluice', 60_000, async () => {
        const asked = await Promise.all(
          Array.from({ length: 4 }, () =>
            client.chat.completions.create({ model, messages, max_tokens: 30 }).withResponse(),
          ),
        )
        return new Set(asked.map(({ response }) => response.headers.get('x-sluice-replica'))).size === 2
      })
    },
    'SIGTERM lets an open stream finish': async () => {
      const { stream } = await openLong({ max_tokens: 200, min_tokens: 200 })
      const ended = once(sluice, 'exit')
      let frames = 0
      for await (const _ of stream) if (++frames === 3) sluice.kill('SIGTERM')
      assert.ok(frames >= 190, `${frames} frames`)
      const [code] = await ended
      assert.equal(code, 0, `exit code ${code}`)
    },
  }
}
