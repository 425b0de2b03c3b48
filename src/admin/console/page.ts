/** The page at `/`: whole and readable as it comes; a script then keeps its regions up to date. */
import { html, raw } from 'hono/html'
import { TIMELINE_RANGES } from '../../telemetry/timeline.ts'
import { SHOWN, type Shown } from '../overview/decisions.ts'
import { type Html, shape } from './marks.ts'
import type { Choices, RegionName, Regions } from './regions.ts'

/** Nothing from elsewhere, no inline script or style, one named door for HTML that the script puts in. */
export const PAGE_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self'",
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  'trusted-types console',
].join('; ')

export type Theme = 'auto' | 'light' | 'dark'
export const THEMES: readonly Theme[] = ['auto', 'light', 'dark']

export interface PageChoices extends Choices {
  readonly theme: Theme
  /** Decisions are guarded, and this viewer has shown the token. */
  readonly signedIn: boolean
}

/** Without scripts the page is loaded anew so often. */
const REFRESH_SEC = 5
const SHOWN_WORDS: Readonly<Record<Shown, string>> = { all: 'all', refused: 'refused', missed: 'missed' }

export function page(choices: PageChoices, regions: Regions): string {
  const { range, shown, theme } = choices
  const region = (name: RegionName) => html`<div id="${name}">${raw(regions[name])}</div>`
  const body = html`<!doctype html>
<html lang="en" data-theme="${theme}">
<head>
<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Sluice</title>
<noscript><meta http-equiv="refresh" content="${REFRESH_SEC}"></noscript>
<link rel="icon" href="/console.svg"><link rel="stylesheet" href="/console.css"><script type="module" src="/console.js"></script>
</head>
<body data-live="/live?range=${range}&shown=${shown}">
<a class="skip" href="#main">Skip to the numbers</a>
<header>
<h1><img src="/console.svg" alt="" width="22" height="22">Sluice</h1>
${region('state')}
<div class="controls"><span id="link" class="sign unknown" hidden>${shape('ok')}<span></span></span><button id="pause" type="button" aria-pressed="false" hidden>Pause</button>
${choice('Theme', THEMES, theme, (to) => linkTo(choices, { theme: to }))}</div>
</header>
<p id="say" class="unseen" role="status"></p>
<main id="main">
<section aria-label="Right now">${region('figures')}</section>
<section aria-labelledby="h-promises"><h2 id="h-promises">Promises</h2>${region('promises')}</section>
<section aria-labelledby="h-history"><div class="bar-head"><h2 id="h-history">How it went</h2>
${choice(
  'Shown time',
  TIMELINE_RANGES.map(({ name }) => name),
  range,
  (to) => linkTo(choices, { range: to }),
)}
<label id="cursor" hidden><span>Time</span><input type="range" min="0" step="1"><output></output></label></div>
${region('charts')}</section>
<section class="two"><div><h2 id="h-waiting">Waiting room</h2>${region('waiting')}</div>
<div><h2 id="h-events">What happened</h2>${region('events')}</div></section>
<section aria-labelledby="h-replicas"><h2 id="h-replicas">Replicas</h2>${region('replicas')}</section>
<section>${region('shadow')}</section>
<section aria-labelledby="h-decisions" data-hold><div class="bar-head"><h2 id="h-decisions">Last decisions</h2>
${choice('Decisions shown', SHOWN, shown, (to) => linkTo(choices, { shown: to }), SHOWN_WORDS)}
<span class="held soft" hidden>held while you read</span>${choices.signedIn ? SIGN_OUT : ''}</div>
${region('decisions')}</section>
</main>
<footer><p>Times are UTC. The numbers behind this page: <a href="/overview">/overview</a>, <a href="/slo">/slo</a>, <a href="/replicas">/replicas</a>,
<a href="/decisions">/decisions</a>, <a href="/metrics">/metrics</a>, <a href="/readyz?verbose">/readyz</a>, <a href="/health/slo">/health/slo</a>. The same in a terminal: <code>sluice top</code>.</p></footer>
</body>
</html>`
  return String(body)
}

const SIGN_OUT = html`<form method="post" action="/-/session"><input type="hidden" name="token" value=""><button>Hide decisions</button></form>`

/** Links of which one is the current choice. */
function choice<T extends string>(
  name: string,
  all: readonly T[],
  current: T,
  link: (to: T) => string,
  words?: Readonly<Record<T, string>>,
): Html {
  const links = all.map(
    (one) =>
      html`<a href="${link(one)}"${one === current ? raw(' aria-current="true"') : ''}>${words?.[one] ?? one}</a>`,
  )
  return html`<nav class="choice" aria-label="${name}">${links}</nav>`
}

function linkTo(
  { range, shown, theme }: PageChoices,
  change: Partial<Pick<PageChoices, 'range' | 'shown' | 'theme'>>,
): string {
  const { range: toRange, shown: toShown, theme: toTheme } = { range, shown, theme, ...change }
  return `/?range=${toRange}&shown=${toShown}&theme=${toTheme}`
}
