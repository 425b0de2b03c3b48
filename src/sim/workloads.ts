/** The workloads that this project measures with, by name. */
import { logNormal, logNormalOf, quantiles } from './lengths.ts'
import type { Workload, WorkloadClass } from './workload-types.ts'

/**
 * The five workloads that people run. Mean lengths and mix are the ones this project's studies use. Spreads follow
 * public traces (p90 over p50): Azure 2023 conversations for chat (prompts 2.7, outputs 3.3), Azure 2023 code for
 * autocomplete (3.5 and 4.2), SWE-bench agent runs for agent (1.7 and 5.7), arXiv summarization for batch (1.4 and
 * 2.2). Voice turns and the shared texts (system prompts, agent sessions) have no public source and are our own
 * assumption.
 */
export const WORKLOADS: readonly WorkloadClass[] = [
  {
    name: 'chat',
    share: 0.5,
    prompt: logNormal(830, 0.77),
    output: logNormal(250, 0.93),
    maxTokens: 1024,
    shared: { families: 4, tokens: 256 },
  },
  {
    name: 'voice',
    share: 0.15,
    prompt: logNormal(560, 0.5),
    output: logNormal(80, 0.5),
    maxTokens: 256,
    shared: { families: 2, tokens: 256 },
  },
  {
    name: 'autocomplete',
    share: 0.2,
    prompt: logNormal(1520, 0.98),
    output: logNormal(28, 1.13),
    maxTokens: 128,
  },
  {
    name: 'agent',
    share: 0.1,
    prompt: logNormal(4360, 0.43),
    output: logNormal(155, 1.35),
    maxTokens: 1024,
    shared: { families: 40, tokens: 2048 },
  },
  {
    name: 'batch',
    share: 0.05,
    prompt: logNormal(2920, 0.24),
    output: logNormal(375, 0.62),
    maxTokens: 1024,
    shared: { families: 1, tokens: 512 },
  },
]

/** Small talk: short questions, short answers. Our own assumption. */
const SHORT_CHAT: WorkloadClass = {
  name: 'chat',
  share: 1,
  prompt: logNormalOf(200, 540),
  output: logNormalOf(100, 330),
  maxTokens: 512,
  shared: { families: 4, tokens: 64 },
}

/** Answers from documents: the lengths of the public arXiv summarization set (p50 and p90). */
const LONG_PROMPTS: WorkloadClass = {
  name: 'chat',
  share: 1,
  prompt: logNormalOf(2730, 3702),
  output: logNormalOf(167, 372),
  maxTokens: 1024,
  shared: { families: 4, tokens: 256 },
}

/** Reasoning: the lengths that ServeGen publishes of DeepSeek-R1 (p50 and p90). */
const LONG_ANSWERS: WorkloadClass = {
  name: 'chat',
  share: 1,
  prompt: logNormalOf(355, 875),
  output: logNormalOf(535, 1478),
  maxTokens: 4096,
  shared: { families: 4, tokens: 64 },
}

/**
 * The two services of the Azure 2023 traces (CC-BY-4.0, Patel et al., Splitwise, ISCA 2024), by the quantiles of their
 * lengths; the service cut code prompts at 7437 tokens. Gaps varied by 1.1 (conversations) and 13 (code).
 */
const AZURE_CONVERSATIONS: WorkloadClass = {
  name: 'chat',
  share: 1,
  prompt: quantiles(
    [0, 2],
    [0.1, 207],
    [0.25, 396],
    [0.5, 1020],
    [0.75, 1189],
    [0.9, 2735],
    [0.99, 4142],
    [1, 14_050],
  ),
  output: quantiles(
    [0, 7],
    [0.1, 54],
    [0.25, 85],
    [0.5, 129],
    [0.75, 395],
    [0.9, 424],
    [0.99, 601],
    [1, 1000],
  ),
  maxTokens: 1024,
}
const AZURE_CODE: WorkloadClass = {
  name: 'autocomplete',
  share: 1,
  prompt: quantiles(
    [0, 3],
    [0.1, 147],
    [0.25, 578],
    [0.5, 1469],
    [0.75, 2745],
    [0.9, 5194],
    [0.99, 7436],
    [1, 7437],
  ),
  output: quantiles([0, 6], [0.1, 7], [0.25, 9], [0.5, 13], [0.75, 24], [0.9, 55], [0.99, 252], [1, 1899]),
  maxTokens: 2048,
}

/**
 * Conversations of chats and coding agents. Turns, added text and pauses of the agent follow SWE-bench runs (47 turns;
 * p50 and p90 of 146 and 791 tokens added, 106 and 601 generated, pauses of 2.8 s and 18 s), cut down to a context of
 * 16 384 tokens: shorter first prompt, fewer turns. The chat's are our own assumption.
 */
const SESSIONS: readonly WorkloadClass[] = [
  {
    name: 'chat',
    share: 0.7,
    prompt: logNormalOf(300, 900),
    output: logNormalOf(150, 450),
    maxTokens: 1024,
    shared: { families: 4, tokens: 256 },
    session: { meanTurns: 4, added: logNormalOf(60, 300), think: { meanMs: 12_000, sigma: 0.8 } },
  },
  {
    name: 'agent',
    share: 0.3,
    prompt: logNormalOf(3500, 5000),
    output: logNormalOf(106, 601),
    maxTokens: 2048,
    shared: { families: 8, tokens: 2048 },
    session: { meanTurns: 12, added: logNormalOf(146, 791), think: { meanMs: 6200, sigma: 1.4 } },
  },
]

/**
 * Four workloads one after the other, each about as hard for its rate: four 8B on an H100 each bear 381, 43, 75 and 107
 * requests a second of them (`sluice simulate --find-goodput --scheduler round-robin`).
 */
const SHIFTING: Workload = {
  name: 'shifting',
  phases: [
    { classes: [SHORT_CHAT], rateRatio: 9 },
    { classes: [LONG_PROMPTS], rateRatio: 1 },
    { classes: [LONG_ANSWERS], rateRatio: 1.8 },
    { classes: WORKLOADS, rateRatio: 2.5 },
  ],
}

const NAMED: readonly Workload[] = [
  { name: 'mixed', phases: [{ classes: WORKLOADS }] },
  { name: 'short-chat', phases: [{ classes: [SHORT_CHAT] }] },
  { name: 'long-prompts', phases: [{ classes: [LONG_PROMPTS] }] },
  { name: 'long-answers', phases: [{ classes: [LONG_ANSWERS] }] },
  SHIFTING,
  { name: 'sessions', phases: [{ classes: SESSIONS }] },
  { name: 'azure-conversations', phases: [{ classes: [AZURE_CONVERSATIONS] }] },
  { name: 'azure-code', phases: [{ classes: [AZURE_CODE] }] },
]

/** Name → workload. */
export const NAMED_WORKLOADS: ReadonlyMap<string, Workload> = new Map(
  NAMED.map((workload) => [workload.name, workload]),
)

/** The workload of that name. Throws a RangeError that lists the known ones. */
export function namedWorkload(name: string): Workload {
  const found = NAMED_WORKLOADS.get(name)
  if (found === undefined) {
    throw new RangeError(`unknown workload "${name}"; there are: ${[...NAMED_WORKLOADS.keys()].join(', ')}`)
  }
  return found
}
