/** The whole file as one zod schema: its types, its checks, its JSON Schema and its table of keys. */
import { z } from 'zod'
import type { OverloadAction } from '../core/request.ts'
import { BEST_EFFORT, BUILTIN_CLASSES } from './builtin-classes.ts'
import type { Mode } from './config.ts'
import {
  address,
  count,
  duration,
  label,
  modelName,
  network,
  oneOf,
  path,
  secret,
  share,
  size,
  text,
  weight,
} from './fields.ts'
import { headerName, product, tenant } from './schema-callers.ts'
import { model } from './schema-models.ts'

const MODES = ['enforce', 'shadow', 'off'] as const satisfies Mode[]
const OVERLOAD = ['shed', 'demote', 'wait'] as const satisfies OverloadAction[]
const SAFE_OBJECTIVE = { min: 0.5, max: 0.99999, say: 'between 50% and 99.999%: 100% leaves no error budget' }

const targets = {
  ttft: duration('ms').optional().describe('Time to first token, for the shortest prompt.'),
  ttft_per_1k_tokens: duration('ms').optional().describe('Added to `ttft` for every 1000 prompt tokens.'),
  tpot: duration('ms').optional().describe('Mean time per output token after the first.'),
  e2e: duration('s').optional().describe('Arrival to last token.'),
  objective: share(SAFE_OBJECTIVE)
    .optional()
    .describe('Share of offered requests that must be good. Default: 99% when there is a target.'),
  weight: weight().optional().describe('Worth of one good request relative to other classes. Default: 1.'),
  overload: oneOf(OVERLOAD)
    .optional()
    .describe(
      'What happens when the target can not be met: refuse it, or let it run late (`demote` and `wait` are one). Default: `shed` with targets, `wait` without.',
    ),
  max_wait: duration('s')
    .optional()
    .describe(
      'Longest time in the waiting room, time with a replica that failed not counted. The default follows from the targets.',
    ),
}

const classSchema = z.preprocess(
  (value) => value ?? {},
  z.strictObject({
    ...targets,
    models: z
      .record(modelName(), z.strictObject(targets))
      .optional()
      .describe('What differs for single models; what is absent is taken from the class.'),
  }),
)

export const fileSchema = z.strictObject({
  listen: address().prefault('0.0.0.0:8080').describe('Where OpenAI-compatible traffic comes in.'),
  admin: z
    .strictObject({
      listen: address()
        .prefault('127.0.0.1:9090')
        .describe('Metrics, probes, console, reload; never on the traffic port.'),
      agent: address()
        .optional()
        .describe("Tells HAProxy's `agent-check` the weight of this Sluice. Default: nobody listens."),
      token: secret('a token')
        .optional()
        .describe('Guards reload and /decisions when set; required on a non-loopback address.'),
    })
    .prefault({})
    .describe('The second port.'),
  mode: oneOf(MODES)
    .prefault('shadow')
    .describe(
      '`enforce` decides; `shadow` routes plainly and records what it would have done; `off` only routes.',
    ),
  instances: count({ min: 1, max: 1000, say: 'a whole number from 1 to 1000' })
    .prefault(1)
    .describe(
      'How many Sluices share these engines: each plans with its part of slots, backlog, KV cache and prefill time, and enforces its part of the limits of tenants. `limits` and `reroute.budget` hold for each.',
    ),
  workers: count({ min: 1, max: 64, say: 'a whole number from 1 to 64; one for each core at most' })
    .prefault(1)
    .describe(
      'Worker processes that relay; from 2 on they share one process that decides. One core relays thousands of chunks a second, so 1 is enough for most.',
    ),
  models: z.array(model).min(1).describe('The models and their engines.'),
  classes: z
    .record(label('a class'), classSchema)
    .prefault(BUILTIN_CLASSES)
    .describe(
      'The workloads and their latency promises, by name. `best-effort` (no targets) is always there.',
    ),
  default_class: label('a class')
    .prefault(BEST_EFFORT)
    .describe('The class of a request that no header and no product names.'),
  products: z.array(product).prefault([]).describe('Rules from requests to classes; the first match wins.'),
  auth: z
    .union([
      oneOf(['keys', 'none']),
      z.strictObject({
        header: headerName.describe('The header in which a gateway in front names the tenant.'),
        trusted: z.array(network()).min(1).describe('Networks from which that header is believed.'),
      }),
    ])
    .optional()
    .describe(
      '`keys`, `none`, or a mapping behind a gateway. Default: `keys` when there are tenants; without tenants it must be said.',
    ),
  tenants: z.array(tenant).prefault([]).describe('Who may call, what they may use and how much.'),
  slo: z
    .strictObject({
      window: duration('d', { min: 3_600_000, max: 90 * 86_400_000, say: 'a window from 1h to 90d' })
        .prefault('30d')
        .describe('Over which the error budget is kept.'),
      state_file: text({ title: 'file', say: 'a path to a file' })
        .optional()
        .describe('Keeps attainment over restarts. Default: it starts empty.'),
    })
    .prefault({})
    .describe('How attainment is kept.'),
  limits: z
    .strictObject({
      body: size().prefault('32MiB').describe('Largest request body; larger ones get 413.'),
      buffered: size().prefault('1GiB').describe('All bodies held at once; beyond it requests get 503.'),
      waiting: z
        .strictObject({
          requests: count().prefault('2000').describe('Requests that wait at most.'),
          bytes: size().prefault('512MiB').describe('Bytes of bodies that wait at most.'),
          tokens: count().prefault('8M').describe('Prompt tokens that wait at most.'),
        })
        .prefault({})
        .describe('Bounds of the waiting room of this instance.'),
      request: duration('m').prefault('1h').describe('Longest life of a request, waiting included.'),
    })
    .prefault({})
    .describe('What one instance holds at most.'),
  timeouts: z
    .strictObject({
      connect: duration('s').prefault('1s').describe('Until a connection to an engine stands.'),
      first_byte: duration('s')
        .prefault('120s')
        .describe(
          'Longest wait for the first byte of an answer; one that does not stream may take longer while its engine shows life.',
        ),
      between_bytes: duration('s').prefault('30s').describe('Longest silence inside an answer.'),
      heartbeat_after: duration('s')
        .prefault('15s')
        .describe(
          'Silence after which a stream gets its 200 and a comment line, so that load balancers keep it.',
        ),
      drain: duration('s')
        .prefault('60s')
        .describe(
          'How long streams may finish after SIGTERM; keep the grace period of the platform above it.',
        ),
    })
    .prefault({})
    .describe('Patience with engines.'),
  reroute: z
    .strictObject({
      budget: share()
        .prefault('10%')
        .describe(
          'Second tries after an engine was full, as a share of dispatches; those after a failure are not counted. 0 turns all of them off.',
        ),
    })
    .prefault({})
    .describe('Second chances on another replica.'),
  passthrough: z
    .array(path())
    .prefault([])
    .describe('Further paths relayed without judgement, e.g. `/rerank`.'),
})

/** The same without its one demand, so that a file that has no models yet is still checked in every other way. */
export const lenientSchema = fileSchema.extend({ models: z.array(model).prefault([]) })

/** The file after the schema: defaults filled in, amounts in base units (ms, bytes, per second, 0 to 1). */
export type ConfigFile = z.output<typeof fileSchema>
export type FileModel = ConfigFile['models'][number]
export type FileClass = ConfigFile['classes'][string]
export type FileTargets = Omit<FileClass, 'models'>
export type FileProduct = ConfigFile['products'][number]
export type FileTenant = ConfigFile['tenants'][number]
