/** The law of the house as data: which folder may import which, where each package lives, and what is banned. */

/** How one folder (or file) of src may reach another. `types` also says: by type imports only. */
export interface Arrow {
  readonly to: string
  /** Only this file of the target may be named. */
  readonly only?: string
  readonly types?: true
}

export interface FolderRule {
  readonly name: string
  /** Pure: no clock, timer, randomness, environment, I/O or promise; the same input gives the same output. */
  readonly pure: boolean
  readonly mayImport: readonly Arrow[]
}

const to = (...names: string[]): Arrow[] => names.map((name) => ({ to: name }))
const EVERYTHING = [
  'core',
  'estimate',
  'policies',
  'slo',
  'engines',
  'errors.ts',
  'upstream',
  'edge',
  'admin',
  'telemetry',
  'config',
  'sim',
  'emulator',
  'load',
  'replay',
  'exports',
  'otel',
  'workers',
]

/** One row for each folder (or loose file) directly under src; what is not here may not exist. */
export const FOLDERS: readonly FolderRule[] = [
  { name: 'core', pure: true, mayImport: [] },
  { name: 'estimate', pure: true, mayImport: to('core') },
  { name: 'policies', pure: true, mayImport: to('core', 'estimate') },
  { name: 'slo', pure: true, mayImport: to('core') },
  { name: 'engines', pure: true, mayImport: to('core') },
  { name: 'errors.ts', pure: true, mayImport: [] },
  { name: 'sim', pure: true, mayImport: to('core', 'estimate', 'policies', 'slo') },
  { name: 'replay', pure: true, mayImport: to('core', 'estimate', 'slo', 'sim') },
  { name: 'upstream', pure: false, mayImport: to('core', 'engines', 'errors.ts') },
  {
    name: 'edge',
    pure: false,
    mayImport: [
      ...to('core', 'estimate', 'engines', 'slo', 'errors.ts'),
      { to: 'upstream', only: 'src/upstream/ports.ts', types: true },
    ],
  },
  { name: 'telemetry', pure: false, mayImport: to('core', 'slo', 'errors.ts') },
  { name: 'otel', pure: false, mayImport: to('core', 'slo', 'telemetry', 'errors.ts') },
  {
    name: 'exports',
    pure: false,
    mayImport: [...to('core', 'slo'), { to: 'telemetry', only: 'src/telemetry/metric-table.ts' }],
  },
  { name: 'admin', pure: false, mayImport: to('core', 'slo', 'telemetry', 'errors.ts') },
  { name: 'config', pure: false, mayImport: to('core', 'engines', 'policies', 'slo', 'errors.ts') },
  { name: 'emulator', pure: false, mayImport: to('core', 'engines', 'sim', 'errors.ts') },
  { name: 'load', pure: false, mayImport: to('core', 'slo', 'sim', 'errors.ts') },
  {
    name: 'workers',
    pure: false,
    mayImport: [
      ...to('core', 'estimate', 'engines', 'slo', 'errors.ts', 'upstream', 'edge'),
      { to: 'telemetry', only: 'src/telemetry/samples.ts', types: true },
    ],
  },
  { name: 'cli', pure: false, mayImport: to(...EVERYTHING) },
]

/** Where a package (or a Node module with side effects) may be imported: folders, or single files. */
export const HOMES: Readonly<Record<string, readonly string[]>> = {
  hono: ['edge', 'admin', 'emulator'],
  '@hono/node-server': ['edge', 'admin', 'emulator', 'src/cli/admin-side.ts'],
  undici: ['load'],
  opossum: ['src/upstream/breaker.ts'],
  'prom-client': ['telemetry'],
  pino: ['telemetry'],
  zod: ['config'],
  yaml: ['config', 'exports'],
  chokidar: ['config'],
  commander: ['cli'],
  'log-update': ['cli'],
  'cli-table3': ['cli'],
  picocolors: ['cli'],
  'eventsource-parser': ['load'],
  'lru-cache': ['estimate', 'policies', 'edge', 'upstream', 'telemetry', 'admin'],
  '@opentelemetry/api': ['otel'],
  '@opentelemetry/exporter-metrics-otlp-http': ['otel'],
  '@opentelemetry/exporter-metrics-otlp-proto': ['otel'],
  '@opentelemetry/exporter-trace-otlp-http': ['otel'],
  '@opentelemetry/exporter-trace-otlp-proto': ['otel'],
  '@opentelemetry/resources': ['otel'],
  '@opentelemetry/sdk-metrics': ['otel'],
  '@opentelemetry/sdk-trace': ['otel'],
  'node:dns': ['upstream'],
  'node:child_process': ['cli'],
  'node:cluster': ['src/cli/supervisor.ts'],
  'node:worker_threads': ['cli'],
}

/** Node modules that a pure folder may use: they turn values into values. */
export const PURE_NODE_MODULES: readonly string[] = ['node:buffer']

/** Globals that a pure folder may not name. */
export const IMPURE_GLOBALS: readonly string[] = [
  'Date',
  'performance',
  'setTimeout',
  'setInterval',
  'setImmediate',
  'queueMicrotask',
  'process',
  'console',
  'fetch',
  'crypto',
  'globalThis',
  'Promise',
]

/** Words that say nothing, banned in file names and in exported identifiers. */
export const BANNED_WORDS: readonly string[] = [
  'manager',
  'helper',
  'util',
  'common',
  'process',
  'data',
  'info',
  'backend',
  'handler',
]

/** Folders that speak HTTP, where a handler is the right word. */
export const HTTP_FOLDERS: readonly string[] = ['edge', 'admin', 'upstream', 'emulator']

export const MAX_FILE_LINES = 300
export const MAX_FUNCTION_LINES = 50
