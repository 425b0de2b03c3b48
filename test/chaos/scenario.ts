/** What the chaos run is made of: engines of one size, promises, and the file that Sluice is given. */

/** Requests that each engine works on at a time. */
export const SLOTS = 3
/** Tokens of each answer. */
export const ANSWER_TOKENS = 10
/** Has the embedded engines make exactly so many, as the scripted ones do. */
export const OF_THAT_LENGTH = { vllm_xargs: { output_tokens: ANSWER_TOKENS } }
export const MODEL = 'tiny'
/**
 * A silence that is longer than any of the storm but one that hangs: a replica that is six times as slow for four
 * seconds kept the last of those that had been sent there for 8.
 */
const SILENCE_LIMIT_MS = 12_000
/** An answer that does not stream is silent until it is whole, so a mute engine is given up by this limit alone. */
const ANSWER_LIMIT_MS = 20_000
/** Bodies above it are refused. */
export const BODY_LIMIT_BYTES = 64 * 1024

export interface FileFacts {
  readonly replicas: readonly string[]
  /** Changes with each good file, so that each has a digest of its own. */
  readonly waitingRequests: number
  /** Worker processes of Sluice. */
  readonly workers: number
}

/** The file of a chaos run. Targets never change in it: they would start the counters anew. */
export function chaosFile({ replicas, waitingRequests, workers }: FileFacts): string {
  return `listen: 127.0.0.1:0
admin: { listen: "127.0.0.1:0" }
mode: enforce
workers: ${workers}
auth: none
models:
  - name: ${MODEL}
    replicas: [${replicas.join(', ')}]
classes:
  chat: { ttft: 800ms, objective: 90% }
  agent: { ttft: 3s, overload: wait, max_wait: 2s }
  batch: { overload: wait, max_wait: 4s }
  calm: { ttft: 15s, overload: wait, max_wait: 15s }
default_class: chat
limits: { body: ${BODY_LIMIT_BYTES / 1024}KiB, request: ${ANSWER_LIMIT_MS}ms, waiting: { requests: ${waitingRequests} } }
timeouts: { connect: 1s, first_byte: ${SILENCE_LIMIT_MS}ms, between_bytes: ${SILENCE_LIMIT_MS}ms, heartbeat_after: 2s, drain: ${SILENCE_LIMIT_MS}ms }
`
}

/** Files that must change nothing. */
export function badFiles(good: string): Readonly<Record<string, string>> {
  return {
    empty: '',
    'cut short': good.slice(0, good.indexOf('objective')),
    'an unknown key': `${good}lmits: { body: 1MiB }\n`,
    'a bad value': good.replace('mode: enforce', 'mode: enfroce'),
    'an unknown class': good.replace('default_class: chat', 'default_class: chatt'),
    'no YAML': `${good}\n\t: [ } "`,
    'no replicas': good.replace(/replicas: \[.*\]/, 'replicas: []'),
  }
}
