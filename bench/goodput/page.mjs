/** The page of results in Markdown: a section a part, each with its own command, losses before everything else. */
import { asMarkdown } from './layout.mjs'

const INTRODUCTION = `# Goodput

Written by \`npm run bench:goodput -- --write\`, each section by the command that it names; do not edit. Everything here ran in
virtual time on simulated engines (see \`src/sim/\`), not on GPUs: it compares decisions, on equal ground, and says nothing
about any engine's speed.

![Goodput over offered load](goodput.svg)

How to read it:

- **1x** is the highest rate at which the bare fleet (round-robin, unbounded engine queues) keeps 90 % of requests good,
  found by bisection.
- A request is **good** when it completes within the TTFT and the TPOT (or end-to-end) target of its class; a refused one
  is bad. All figures are over requests *offered* that have a promise. ± is the 95 % interval over seeds; differences are of pairs of equal seeds.
- **Every rival is tuned** for each scenario on another seed, one setting after the other over its range (\`--quick\`: once,
  every second value where there are more than four; *Everyone*: every value, twice). Sluice has no setting and starts with nothing learnt.
- **All are told** slots, KV size and token budget of the engines, prompt tokens are counted exactly, and the way to the
  engine takes no time; the scenario \`untold\` is without all that. Every class weighs 1. Targets are those of
  \`src/sim/classes.ts\`; Mooncake's prompts have 250 ms more for each 1000 tokens. The first third of a run warms up and is not counted; of a trace all is.
- The rival **scorpio** is a policy of a paper that borrows Sluice's predictions and is told the engine's step times, so
  that policies are compared and not predictors: nobody has it in the field. The others see what they would see.
- The **best schedule found in hindsight** knows every answer's length and all arrivals, and chooses whom to refuse by
  replaying the run within a fixed budget (\`--quick\`: one seed). It is no optimum. The **certified bound** (U2) holds for every schedule but is
  loose.`

const START = /^(?=## )/m
const titleOf = (text) => text.slice('## '.length).split('\n', 1)[0]

/**
 * The page with these sections, `{ title, command, losses?, short?, tables }`, in place of those of the same titles.
 * Others stay as they are, in the order of `titles`; what has a title that is not there is dropped.
 */
export function withSections(page, sections, titles) {
  const old = page.split(START).filter((text) => text.startsWith('## '))
  const texts = new Map(old.map((text) => [titleOf(text), text.trimEnd()]))
  for (const section of sections) texts.set(section.title, sectionText(section))
  const shown = titles.filter((title) => texts.has(title))
  const contents = shown.map((title) => `- [${title}](#${anchorOf(title)})`).join('\n')
  return `${[INTRODUCTION, contents, ...shown.map((title) => texts.get(title))].join('\n\n')}\n`
}

/** As GitHub makes it. */
const anchorOf = (title) =>
  title
    .toLowerCase()
    .replace(/[^\w -]/g, '')
    .replaceAll(' ', '-')

function sectionText({ title, command, losses, short, tables }) {
  const first = [short, losses].filter((table) => table !== undefined)
  return [`## ${title}`, `By \`${command}\`.`, ...[...first, ...tables].map(asMarkdown)].join('\n\n')
}
