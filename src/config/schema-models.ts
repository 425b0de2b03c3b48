/** The part of the schema that says what is served: models, their replicas, how the engines were started. */
import { z } from 'zod'
import { ENGINE_KINDS } from '../engines/registry.ts'
import { count, flag, modelName, oneOf, origin, secret, text } from './fields.ts'

const engine = () => oneOf(ENGINE_KINDS)
const hostName = text({
  title: 'host name',
  pattern: /^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$/,
  say: 'a host name without port, such as vllm-headless.llm.svc',
})
const port = count({ min: 1, max: 65_535, say: 'a port from 1 to 65535' })

const replica = z
  .strictObject({
    url: origin().optional().describe('Scheme, host and port of the engine; Sluice adds the paths.'),
    dns: hostName.optional().describe('A name whose every address is a replica; looked up again and again.'),
    port: port.optional().describe('The port behind `dns`.'),
    key: secret('the key that the engine asks for')
      .optional()
      .describe("Bearer key towards this engine; the client's own key is never passed on."),
    engine: engine()
      .optional()
      .describe('Engine kind of this replica, where a pool is mixed. Default: that of the model.'),
  })
  .meta({ oneOf: [{ required: ['url'] }, { required: ['dns', 'port'] }] })

export const model = z.strictObject({
  name: modelName().describe('What clients ask for.'),
  aliases: z.array(modelName()).prefault([]).describe('Further names for the same model.'),
  served_name: modelName().optional().describe('What the engine is asked for. Default: `name`.'),
  rename_answers: flag()
    .prefault(false)
    .describe(
      'Answers name the model as it was asked for, in every chunk; else they keep the name that the engine wrote.',
    ),
  adapters: z
    .array(modelName())
    .prefault([])
    .describe('LoRA adapters that the same replicas serve, each asked for by its own name.'),
  engine: engine().prefault('vllm').describe('Engine kind of the replicas.'),
  profile: text({ title: 'profile', say: 'a profile, such as Llama-3.1-8B/H100-80G-SXM/tp1' })
    .optional()
    .describe(
      'Prior for model, GPU and parallelism, corrected online; without it Sluice learns from nothing.',
    ),
  engine_args: z
    .strictObject({
      max_num_seqs: count().optional().describe('Sequences that one engine runs at once.'),
      max_num_batched_tokens: count().optional().describe('Token budget of one engine step.'),
      max_model_len: count().optional().describe('Longest context in tokens.'),
      priority_scheduling: flag()
        .prefault(false)
        .describe(
          'The engines order by priority (vLLM `--scheduling-policy priority`, SGLang `--enable-priority-scheduling`): requests then carry that of their class. A vLLM without the flag refuses them.',
        ),
      kv_capacity_tokens: count().optional().describe('KV cache of one replica in tokens.'),
      prefill_engines: count()
        .optional()
        .describe(
          'Engines behind each address that only compute prompts, where others there make the answers (disaggregated prefill). Default: one engine does both.',
        ),
    })
    .prefault({})
    .describe('How the engines were started; what is absent is read from their metrics or learnt.'),
  replicas: z
    .array(z.union([origin(), replica]))
    .min(1)
    .describe('The engines: URLs, or mappings as below.'),
})
