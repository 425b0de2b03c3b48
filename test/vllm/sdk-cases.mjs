/** The official OpenAI client for JavaScript against Sluice: everyday requests, errors and aborts. */
import assert from 'node:assert/strict'
import OpenAI from 'openai'

const messages = [{ role: 'user', content: 'Tell me of the river and of the hills.' }]
const tool = {
  type: 'function',
  function: {
    name: 'look_up',
    description: 'Looks up a word.',
    parameters: {
      type: 'object',
      properties: { word: { type: 'string', maxLength: 8 } },
      required: ['word'],
    },
  },
}

async function collect(stream) {
  const chunks = []
  for await (const chunk of stream) chunks.push(chunk)
  return chunks
}

/** The cases by name, each a function that throws when it fails. */
export function sdkCases({ base, key, model }) {
  const client = new OpenAI({ baseURL: `${base}/v1`, apiKey: key, maxRetries: 0, timeout: 120_000 })
  const chat = (more) => client.chat.completions.create({ model, messages, max_tokens: 8, ...more })
  return {
    'lists the model': async () => {
      const names = (await client.models.list()).data.map((each) => each.id)
      assert.ok(names.includes(model), `${names}`)
    },
    chat: async () => {
      const answer = await chat()
      assert.equal(answer.choices[0].message.role, 'assistant')
      assert.ok(answer.usage.completion_tokens > 0)
    },
    'chat streamed, usage asked for': async () => {
      const chunks = await collect(await chat({ stream: true, stream_options: { include_usage: true } }))
      assert.ok(chunks.at(-1).usage?.completion_tokens > 0, 'no usage in the last frame')
      assert.ok(chunks.some((chunk) => chunk.choices[0]?.finish_reason))
    },
    'chat streamed, usage not asked for': async () => {
      const chunks = await collect(await chat({ stream: true }))
      assert.ok(chunks.length > 1)
      assert.ok(
        chunks.every((chunk) => chunk.choices.length > 0 && !chunk.usage),
        'a frame too many',
      )
    },
    completion: async () => {
      const answer = await client.completions.create({ model, prompt: 'the river', max_tokens: 6 })
      assert.ok(answer.usage.total_tokens > 0)
    },
    'completion streamed from token ids': async () => {
      const prompt = [301, 302, 303]
      const chunks = await collect(
        await client.completions.create({ model, prompt, max_tokens: 6, stream: true }),
      )
      assert.ok(chunks.at(-1).choices[0].finish_reason)
    },
    'two choices': async () => {
      const answer = await chat({ n: 2 })
      assert.deepEqual(answer.choices.map((choice) => choice.index).sort(), [0, 1])
    },
    'two choices streamed': async () => {
      const chunks = await collect(await chat({ n: 2, stream: true }))
      const ends = chunks.flatMap((chunk) => chunk.choices).filter((choice) => choice.finish_reason)
      assert.deepEqual(ends.map((choice) => choice.index).sort(), [0, 1])
    },
    'a named tool': async () => {
      const tool_choice = { type: 'function', function: { name: 'look_up' } }
      const answer = await chat({ tools: [tool], tool_choice, max_tokens: 60 })
      // Random weights seldom close the call before max_tokens; vLLM then gives its beginning as content.
      const { tool_calls, content } = answer.choices[0].message
      assert.match(tool_calls?.[0]?.function.name ?? content, /look_up/)
    },
    'a named tool streamed': async () => {
      const tool_choice = { type: 'function', function: { name: 'look_up' } }
      const chunks = await collect(await chat({ tools: [tool], tool_choice, max_tokens: 60, stream: true }))
      const calls = chunks.flatMap((chunk) => chunk.choices[0]?.delta.tool_calls ?? [])
      assert.ok(calls.some((call) => call.function?.name === 'look_up'))
    },
    logprobs: async () => {
      const answer = await chat({ logprobs: true, top_logprobs: 2 })
      assert.equal(answer.choices[0].logprobs.content[0].top_logprobs.length, 2)
    },
    'logprobs streamed': async () => {
      const chunks = await collect(await chat({ logprobs: true, top_logprobs: 2, stream: true }))
      assert.ok(chunks.some((chunk) => chunk.choices[0]?.logprobs?.content?.length > 0))
    },
    'an unknown model is a 404': () => assert.rejects(chat({ model: 'no-such-model' }), OpenAI.NotFoundError),
    "the engine's own 400 comes through": () =>
      assert.rejects(chat({ temperature: -3 }), (error) => {
        assert.ok(error instanceof OpenAI.BadRequestError, `${error}`)
        assert.match(error.message, /temperature/)
        return true
      }),
    'a wrong key is a 401': () => {
      const stranger = new OpenAI({ baseURL: `${base}/v1`, apiKey: 'wrong', maxRetries: 0 })
      return assert.rejects(
        stranger.chat.completions.create({ model, messages, max_tokens: 4 }),
        OpenAI.AuthenticationError,
      )
    },
    'a prompt over the context limit is a 400': () =>
      assert.rejects(
        client.completions.create({ model, prompt: new Array(9000).fill(301), max_tokens: 4 }),
        OpenAI.BadRequestError,
      ),
    'the same, streamed, is a 400 too': () =>
      assert.rejects(
        client.completions.create({ model, prompt: new Array(9000).fill(301), max_tokens: 4, stream: true }),
        OpenAI.BadRequestError,
      ),
  }
}
