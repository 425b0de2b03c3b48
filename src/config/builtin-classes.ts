/** The classes that a file without `classes` has, as they would be written in it. */

/** Name → the class in the file's own spelling. `sluice init` writes these, and a test holds the two together. */
export const BUILTIN_CLASSES = {
  chat: { ttft: '500ms', tpot: '50ms', objective: '99%' },
  voice: { ttft: '300ms', tpot: '60ms', objective: '99.5%', weight: 4 },
  autocomplete: { ttft: '300ms', objective: '99%' },
  agent: {
    ttft: '2s',
    ttft_per_1k_tokens: '250ms',
    e2e: '20s',
    objective: '98%',
    overload: 'wait',
    max_wait: '30s',
  },
  batch: { overload: 'wait', max_wait: '10m' },
  'best-effort': {},
} as const

/** What unclassified traffic gets unless `default_class` says otherwise; always there, without targets. */
export const BEST_EFFORT = 'best-effort'
