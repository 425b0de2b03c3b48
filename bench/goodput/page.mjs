/** The page of results in Markdown: what was run and how, losses before everything else, then every table. */
import { asMarkdown } from './layout.mjs'

const INTRODUCTION = `# Goodput

Written by \`npm run bench:goodput -- --write\`; do not edit. Everything here ran in virtual time on simulated engines (see
\`src/sim/\`), not on GPUs: it compares decisions, on equal ground, and says nothing about any engine's speed.

![Goodput over offered load](goodput.svg)

How to read it:

- **1x** is the highest rate at which the bare fleet (round-robin, unbounded engine queues) keeps 90 % of requests good,
  found by bisection.
- A request is **good** when it completes within the TTFT and the TPOT (or end-to-end) target of its class; a refused one
  is bad. All figures are over requests *offered*. ± is the 95 % interval over seeds; differences are of pairs of equal seeds.
- **Every rival is tuned** for each scenario on another seed, one setting after the other over its whole range. Sluice has
  no setting and starts with nothing learnt.
- The **best schedule found in hindsight** knows every answer's length and all arrivals, and chooses whom to refuse by
  replaying the run within a fixed budget. It is no optimum. The **certified bound** (U2) holds for every schedule but is
  loose.
`

/** `{ command, losses, short, sections: [{ title, tables }] }` as one page. */
export function goodputPage({ command, losses, short, sections }) {
  const parts = [
    INTRODUCTION,
    `Run with \`${command}\`.`,
    '## In short',
    asMarkdown(short),
    '## Losses',
    asMarkdown(losses),
    ...sections.flatMap(({ title, tables }) => [`## ${title}`, ...tables.map(asMarkdown)]),
  ]
  return `${parts.join('\n\n')}\n`
}
