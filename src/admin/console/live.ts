/** Keeps open pages up to date: one drawing a second for all viewers, to each only what has changed for it. */
import type { Ms, Ratio } from '../../core/units.ts'
import { type Choices, REGION_NAMES, type RegionPainter, type Regions } from './regions.ts'

/** Calls `run` every `periodMs` until it is stopped. */
export type Every = (periodMs: Ms, run: () => void) => () => void

/** More viewers at once are turned away. */
export const MAX_VIEWERS = 32
const PERIOD_MS: Ms = 1000
/** Share of a core that drawing may take: a large fleet is drawn less often. */
const DRAWING_RATIO: Ratio = 0.005
/** But no less often than that: pages take a longer silence for a lost connection. */
const LONGEST_REST_MS: Ms = 3000
/** A viewer that has taken nothing for so many rounds is let go. */
const MAX_ROUNDS_STUCK = 60
/** How long a browser waits before it comes back. */
const COME_BACK_MS: Ms = 2000

/** What a viewer has chosen; whether it may read decisions is asked each time, since the token can change. */
export interface Viewing extends Omit<Choices, 'mayReadDecisions'> {
  readonly mayReadDecisions: () => boolean
}

interface Viewer {
  readonly viewing: Viewing
  readonly controller: ReadableStreamDefaultController<Uint8Array>
  /** The last regions that it got; absent before the first. */
  sent: Regions | undefined
  /** It has taken all that it was sent, and wants more. */
  ready: boolean
  roundsStuck: number
}

export class LiveFeed {
  readonly #painter: RegionPainter
  readonly #nowMs: () => Ms
  readonly #every: Every
  readonly #viewers = new Set<Viewer>()
  #restsUntilMs: Ms = Number.NEGATIVE_INFINITY
  #stop: (() => void) | undefined

  constructor(painter: RegionPainter, nowMs: () => Ms, every: Every = systemEvery) {
    this.#painter = painter
    this.#nowMs = nowMs
    this.#every = every
  }

  get viewers(): number {
    return this.#viewers.size
  }

  /** A stream of server-sent events for one more viewer; undefined when there are enough. It ends when it is cancelled. */
  open(viewing: Viewing): ReadableStream<Uint8Array> | undefined {
    if (this.#viewers.size >= MAX_VIEWERS) return undefined
    let viewer: Viewer | undefined
    return new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          viewer = { viewing, controller, sent: undefined, ready: false, roundsStuck: 0 }
          this.#viewers.add(viewer)
          this.#stop ??= this.#every(PERIOD_MS, () => this.#paced())
          controller.enqueue(new TextEncoder().encode(`retry: ${COME_BACK_MS}\n\n`))
        },
        // Asked for only when all before has been taken: a slow viewer skips drawings instead of piling them up.
        pull: () => {
          if (viewer !== undefined) viewer.ready = true
        },
        cancel: () => {
          if (viewer !== undefined) this.#leave(viewer)
        },
      },
      { highWaterMark: 1 },
    )
  }

  #paced(): void {
    const startMs = this.#nowMs()
    if (startMs < this.#restsUntilMs) return
    this.#round()
    const restMs = (this.#nowMs() - startMs) / DRAWING_RATIO
    this.#restsUntilMs = startMs + Math.min(restMs, LONGEST_REST_MS)
  }

  #round(): void {
    const draw = this.#painter.moment()
    const drawn = new Map<string, Regions>()
    const frames = new Map<Regions | undefined, Map<Regions, Uint8Array>>()
    for (const viewer of [...this.#viewers]) {
      if (!viewer.ready) {
        if (++viewer.roundsStuck > MAX_ROUNDS_STUCK) this.#drop(viewer)
        continue
      }
      const regions = this.#regionsFor(viewer.viewing, draw, drawn)
      const bySent = frames.get(viewer.sent) ?? new Map<Regions, Uint8Array>()
      frames.set(viewer.sent, bySent)
      const frame = bySent.get(regions) ?? frameOf(viewer.sent, regions)
      bySent.set(regions, frame)
      viewer.sent = regions
      viewer.ready = false
      viewer.roundsStuck = 0
      viewer.controller.enqueue(frame)
    }
  }

  /** Drawn once a round for each set of choices. */
  #regionsFor(viewing: Viewing, draw: (choices: Choices) => Regions, drawn: Map<string, Regions>): Regions {
    const { range, shown } = viewing
    const mayReadDecisions = viewing.mayReadDecisions()
    const id = `${range} ${shown} ${mayReadDecisions}`
    const known = drawn.get(id)
    if (known !== undefined) return known
    const fresh = draw({ range, shown, mayReadDecisions })
    drawn.set(id, fresh)
    return fresh
  }

  #drop(viewer: Viewer): void {
    this.#leave(viewer)
    viewer.controller.error(new Error('this viewer takes nothing'))
  }

  #leave(viewer: Viewer): void {
    this.#viewers.delete(viewer)
    if (this.#viewers.size > 0) return
    this.#stop?.()
    this.#stop = undefined
  }
}

/** The regions that differ, as one event. */
function frameOf(sent: Regions | undefined, regions: Regions): Uint8Array {
  const changed = REGION_NAMES.filter((name) => sent?.[name] !== regions[name])
  const html = Object.fromEntries(changed.map((name) => [name, regions[name]]))
  return new TextEncoder().encode(`data: ${JSON.stringify(html)}\n\n`)
}

function systemEvery(periodMs: Ms, run: () => void): () => void {
  const timer = setInterval(run, periodMs)
  timer.unref()
  return () => clearInterval(timer)
}
