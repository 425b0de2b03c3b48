// @ts-check
/** Keeps the console up to date in place, lets it be paused, and moves one time cursor through all charts. */

const COME_BACK_MS = 10_000
/** Without a word for so long the numbers on the page are old. */
const STALE_MS = 5000

/** @param {string} id */
const byId = (id) => /** @type {HTMLElement} */ (document.getElementById(id))

// ---- Putting new HTML in, without touching what has not changed: focus, selection and open parts stay.

/** @typedef {{ createHTML(html: string): string }} Policy */
const trust = /** @type {{ trustedTypes?: { createPolicy(name: string, rules: Policy): Policy } }} */ (
  /** @type {unknown} */ (window)
).trustedTypes?.createPolicy('console', { createHTML: (html) => html })

/** @param {Element} region @param {string} html */
function put(region, html) {
  const parsed = new DOMParser().parseFromString(trust ? trust.createHTML(html) : html, 'text/html')
  morphChildren(region, parsed.body)
}

/** @param {Element} old @param {Element} fresh */
function morphChildren(old, fresh) {
  const named = new Map([...old.children].filter(({ id }) => id !== '').map((child) => [child.id, child]))
  let at = old.firstChild
  for (const next of [...fresh.childNodes]) {
    const wanted = next instanceof Element && next.id !== '' ? named.get(next.id) : undefined
    if (wanted && wanted !== at) old.insertBefore(wanted, at)
    const here = wanted ?? at
    if (here && alike(here, next) && (wanted || !(here instanceof Element && here.id !== ''))) {
      morph(here, next)
      at = here.nextSibling
    } else old.insertBefore(next, at)
  }
  while (at) {
    const gone = at
    at = at.nextSibling
    gone.remove()
  }
}

/** @param {Node} old @param {Node} fresh */
function alike(old, fresh) {
  return old.nodeType === fresh.nodeType && old.nodeName === fresh.nodeName
}

/** @param {Node} old @param {Node} fresh */
function morph(old, fresh) {
  if (!(old instanceof Element) || !(fresh instanceof Element)) {
    if (old.nodeValue !== fresh.nodeValue) old.nodeValue = fresh.nodeValue
    return
  }
  for (const { name } of [...old.attributes]) {
    // What the reader has opened stays open.
    if (!fresh.hasAttribute(name) && name !== 'open') old.removeAttribute(name)
  }
  for (const { name, value } of fresh.attributes)
    if (old.getAttribute(name) !== value) old.setAttribute(name, value)
  morphChildren(old, fresh)
}

// ---- The stream.

/** @type {Map<string, string>} Regions that wait to be put in. */
const pending = new Map()
let paused = false
let heardAtMs = performance.now()

/** @param {'ok' | 'warn' | 'unknown'} tone @param {string} word */
function showLink(tone, word) {
  const link = byId('link')
  const text = /** @type {Element} */ (link.lastElementChild)
  if (text.textContent === word) return
  link.className = `sign ${tone}`
  text.textContent = word
  if (tone === 'warn') say('The connection is lost; the numbers are old.')
}

/** @param {string} words Read out by screen readers. */
function say(words) {
  byId('say').textContent = words
}

function apply() {
  if (paused) return
  const before = byId('headline').textContent
  for (const [name, html] of pending) {
    const region = byId(name)
    const section = region.closest('[data-hold]')
    const held = section?.matches(':hover, :focus-within') ?? false
    section?.querySelector('.held')?.toggleAttribute('hidden', !held)
    if (held) continue
    put(region, html)
    pending.delete(name)
  }
  const headline = byId('headline')
  if (headline.textContent !== before) say(headline.textContent ?? '')
  document.title = headline.matches('.critical, .burning') ? '▲ Sluice' : 'Sluice'
  showCursor()
}

function listen() {
  const stream = new EventSource(document.body.dataset.live ?? '/live')
  stream.onmessage = ({ data }) => {
    heardAtMs = performance.now()
    showLink('ok', 'live')
    for (const [name, html] of Object.entries(JSON.parse(data))) pending.set(name, html)
    apply()
  }
  stream.onerror = () => {
    showLink('warn', 'lost')
    // Turned away, as when too many look: the browser does not try again by itself.
    if (stream.readyState === EventSource.CLOSED) setTimeout(listen, COME_BACK_MS)
  }
}

// ---- One cursor for all charts.

const cursor = byId('cursor')
const slider = /** @type {HTMLInputElement} */ (cursor.querySelector('input'))
const output = /** @type {HTMLOutputElement} */ (cursor.querySelector('output'))
/** The step that is looked at; undefined follows the newest. @type {number | undefined} */
let looked

/** @returns {SVGElement[]} */
const plots = () =>
  [...document.querySelectorAll('[data-series]')].map((plot) => /** @type {SVGElement} */ (plot))

function showCursor() {
  /** @type {string[]} */
  const told = []
  for (const plot of plots()) {
    /** @type {(number | null)[][]} */
    const series = JSON.parse(plot.dataset.series ?? '[]')
    const last = (series[0]?.length ?? 1) - 1
    slider.max = String(last)
    const at = Math.min(looked ?? last, last)
    if (looked === undefined) slider.value = String(last)
    const line = /** @type {SVGLineElement} */ (plot.querySelector('.cursor'))
    line.setAttribute('visibility', looked === undefined ? 'hidden' : 'visible')
    for (const end of ['x1', 'x2']) line.setAttribute(end, `${(at / last) * 100}%`)
    const values = [...(plot.closest('figure')?.querySelectorAll('[data-line]') ?? [])].map(
      (place, index) => {
        const value =
          looked === undefined ? series[index]?.findLast((one) => one !== null) : series[index]?.[at]
        const text = value === undefined || value === null ? '–' : `${value}${plot.dataset.unit}`
        if (place.textContent !== text) place.textContent = text
        return text
      },
    )
    if (told.length === 0) {
      const unixMs = Number(plot.dataset.end) - (last - at) * Number(plot.dataset.step)
      output.textContent = looked === undefined ? 'now' : new Date(unixMs).toISOString().slice(11, 19)
      told.push(output.textContent, `good ${values[0]}, missed ${values[1]}, refused ${values[2]}`)
    }
  }
  slider.setAttribute('aria-valuetext', told.join(': '))
}

/** @param {number} at */
function look(at) {
  looked = at >= Number(slider.max) ? undefined : at
  if (looked !== undefined) slider.value = String(looked)
  showCursor()
}

slider.addEventListener('input', () => look(Number(slider.value)))
document.addEventListener('pointermove', (event) => {
  const plot = event.target instanceof Element ? event.target.closest('[data-series]') : null
  if (!plot) return
  const { left, width } = plot.getBoundingClientRect()
  look(Math.round(((event.clientX - left) / width) * Number(slider.max)))
})
byId('charts').addEventListener('pointerleave', () => look(Number.POSITIVE_INFINITY))

// ---- Start.

const pause = byId('pause')
pause.addEventListener('click', () => {
  paused = !paused
  pause.setAttribute('aria-pressed', String(paused))
  pause.textContent = paused ? 'Go on' : 'Pause'
  apply()
})
for (const hidden of [pause, byId('link'), cursor]) hidden.hidden = false
setInterval(() => {
  if (performance.now() - heardAtMs > STALE_MS) showLink('warn', 'lost')
}, 1000)
showLink('unknown', 'joining')
showCursor()
listen()
