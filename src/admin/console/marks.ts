/** The small drawn signs of the console: states have a shape of their own beside their colour. */
import { html } from 'hono/html'
import type { Ratio } from '../../core/units.ts'

/** A piece of the page; what is put into it as text is escaped. */
export type Html = ReturnType<typeof html>

/** How something stands. Each has a colour and a shape. */
export type Tone = 'ok' | 'warn' | 'bad' | 'unknown'

const SHAPES: Readonly<Record<Tone, Html>> = {
  ok: html`<circle cx="6" cy="6" r="4"/>`,
  warn: html`<path d="M6 1.6 11 10.4H1z"/>`,
  bad: html`<path d="M6 .8 11.2 6 6 11.2 .8 6z"/>`,
  unknown: html`<circle cx="6" cy="6" r="3.4" class="hollow"/>`,
}

/** Shape and word. */
export function sign(tone: Tone, word: string): Html {
  return html`<span class="sign ${tone}">${shape(tone)}${word}</span>`
}

/** The shape alone; something beside it must say the same. */
export function shape(tone: Tone): Html {
  return html`<svg class="shape" viewBox="0 0 12 12" aria-hidden="true">${SHAPES[tone]}</svg>`
}

/** A bar that is full at 1; its number stands beside it as text. */
export function bar(ratio: Ratio | undefined, tone: Tone | 'plain' = 'plain'): Html {
  const width = Math.round(Math.min(1, Math.max(0, ratio ?? 0)) * 1000) / 10
  return html`<svg class="bar" aria-hidden="true"><rect width="${width}%" class="${tone}"/></svg>`
}

/** A table in a frame of its own that scrolls by itself, also by keyboard. `name` is what a screen reader calls it. */
export function table(name: string, head: Html, rows: readonly Html[], empty: string): Html {
  if (rows.length === 0) return html`<p class="empty">${empty}</p>`
  return html`<div class="scroll" role="region" aria-label="${name}" tabindex="0"><table>
<thead><tr>${head}</tr></thead>
<tbody>${rows}</tbody></table></div>`
}
