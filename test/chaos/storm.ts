/** Breaks replicas one after another, their metrics pages beside that, and reloads good and bad files meanwhile. */
import type { Rng } from '../../src/sim/rng.ts'
import { eventually } from '../support/deadline.ts'
import { badFiles } from './scenario.ts'
import type { Mood, PageMood } from './scripted-replica.ts'
import type { Stage, StagedReplica } from './stage.ts'

const PROCESS_FAULTS = ['killed', 'paused', 'restarted'] as const
const MOOD_FAULTS = ['slow', 'truncating', 'erring', 'lying', 'mute'] as const
export const FAULTS = [...PROCESS_FAULTS, ...MOOD_FAULTS] as const
export type FaultKind = (typeof FAULTS)[number]

/** Faults in which no request may fail: the replica is late, tells nonsense, or goes in good order. */
export const HARMLESS: ReadonlySet<FaultKind> = new Set(['paused', 'slow', 'lying', 'restarted'])

export interface Fault {
  readonly kind: FaultKind
  readonly replica: string
  /** Wall clock, in Unix ms. */
  readonly fromMs: number
  mendedAtMs: number
}

export interface Reload {
  /** What was written: a good file, or the name of a bad one. */
  readonly file: string
  readonly good: boolean
  readonly how: 'watch' | 'signal' | 'request'
  readonly digestBefore: string
  digestAfter: string
  /** Whether Sluice says that its last attempt went well. */
  succeeded: boolean
}

/** How faults follow one another, and what they are sure to bring about. */
export interface Pace {
  /** Faults in the order of the first round, which each storm has whole; the later ones are shuffled. */
  readonly kinds: readonly FaultKind[]
  /** Shortest and longest time that a fault lasts, and the rest between two. */
  readonly faultMs: readonly [shortest: number, longest: number]
  readonly restMs: number
  readonly reloadEveryMs: number
  /** Whether its faults last long enough to open a breaker for certain. */
  readonly opensBreakers: boolean
}

export interface StormOptions {
  readonly stage: Stage
  readonly rng: Rng
  readonly pace: Pace
  readonly say: (line: string) => void
}

const PAGES: readonly PageMood[] = ['lying', 'failing', 'hanging', 'garbled', 'gone']
const HOWS = ['watch', 'signal', 'request'] as const
/** A rest is longer while more than one replica is out, so that a fault hits one at a time. */
const LOOK_MS = 200
const SPARE_REPLICAS_OUT = 1
const REST_LIMIT_MS = 20_000

export class Storm {
  readonly faults: Fault[] = []
  readonly reloads: Reload[] = []
  readonly pages = new Map<PageMood, number>()
  readonly #options: StormOptions
  readonly #moods = new Map<StagedReplica, { mood: Mood; page: PageMood }>()
  #timeIsUp = false
  #ended = false
  #files = 0

  constructor(options: StormOptions) {
    this.#options = options
  }

  /** Its time is up and each kind of fault has happened and is mended, however slow the machine is; or it has failed. */
  get over(): boolean {
    if (this.#ended) return true
    const mended = this.faults.filter(({ mendedAtMs }) => Number.isFinite(mendedAtMs))
    const kinds = new Set(mended.map(({ kind }) => kind))
    return this.#timeIsUp && this.#options.pace.kinds.every((kind) => kinds.has(kind))
  }

  /** Blows for that long and until its first round is over, then mends all it broke and leaves a good file in force. */
  async blow(durationMs: number): Promise<void> {
    const timer = setTimeout(() => {
      this.#timeIsUp = true
    }, durationMs)
    try {
      await Promise.all([this.#breakReplicas(), this.#breakPages(), this.#reloadFiles()])
    } finally {
      clearTimeout(timer)
      this.#ended = true
    }
  }

  async #breakReplicas(): Promise<void> {
    const { rng, pace } = this.#options
    const { kinds, faultMs, restMs } = pace
    for (let round = kinds; ; round = shuffled(kinds, rng)) {
      for (const kind of round) {
        if (this.over) return
        const [shortest, longest] = faultMs
        await this.#breakOne(kind, shortest + rng.uniform() * (longest - shortest))
        await this.#rest(restMs)
      }
    }
  }

  async #breakOne(kind: FaultKind, forMs: number): Promise<void> {
    const { stage, rng } = this.#options
    const scripted = (MOOD_FAULTS as readonly string[]).includes(kind)
    // A scripted engine knows no good order, so it is never restarted; an embedded one has no moods.
    const able = stage.replicas.filter(({ kind: made }) => {
      return scripted ? made === 'scripted' : kind !== 'restarted' || made === 'embedded'
    })
    const replica = able[rng.integer(able.length)]
    if (replica === undefined) throw new Error(`no replica can be ${kind}`)
    const fault: Fault = {
      kind,
      replica: replica.name,
      fromMs: Date.now(),
      mendedAtMs: Number.POSITIVE_INFINITY,
    }
    this.faults.push(fault)
    if (scripted) {
      await this.#setMood(replica, { mood: kind as Mood })
      await pause(forMs)
      await this.#setMood(replica, { mood: 'fair' })
    } else if (kind === 'paused') {
      replica.child.kill('SIGSTOP')
      await pause(forMs)
      replica.child.kill('SIGCONT')
    } else await this.#replace(replica, kind === 'killed' ? 'SIGKILL' : 'SIGTERM', forMs)
    fault.mendedAtMs = Date.now()
    this.#options.say(`${replica.name} was ${kind} for ${fault.mendedAtMs - fault.fromMs} ms`)
  }

  async #replace(replica: StagedReplica, signal: 'SIGKILL' | 'SIGTERM', forMs: number): Promise<void> {
    replica.child.kill(signal)
    await replica.child.exited
    await pause(forMs / 4)
    await replica.restart()
    this.#moods.delete(replica)
  }

  async #setMood(replica: StagedReplica, change: { mood?: Mood; page?: PageMood }): Promise<void> {
    const mood = { ...(this.#moods.get(replica) ?? { mood: 'fair', page: 'fair' }), ...change } as const
    this.#moods.set(replica, mood)
    // One that is down comes back with a fair mood of its own.
    await replica.setMood(mood.mood, mood.page).catch(() => undefined)
  }

  async #rest(forMs: number): Promise<void> {
    const { stage } = this.#options
    await pause(forMs)
    const endAtMs = performance.now() + REST_LIMIT_MS
    while (!this.over && performance.now() < endAtMs) {
      const states = Object.values(await stage.states())
      if (states.filter((state) => !takesWork(state)).length <= SPARE_REPLICAS_OUT) return
      await pause(LOOK_MS)
    }
  }

  /** Pages go wrong whatever else goes on: they must never matter. */
  async #breakPages(): Promise<void> {
    const { stage, rng, pace } = this.#options
    const scripted = stage.replicas.filter(({ kind }) => kind === 'scripted')
    while (!this.over) {
      const page = PAGES[rng.integer(PAGES.length)] ?? 'failing'
      const replica = scripted[rng.integer(scripted.length)]
      if (replica === undefined) return
      await this.#setMood(replica, { page })
      this.pages.set(page, (this.pages.get(page) ?? 0) + 1)
      await pause(pace.faultMs[0])
      await this.#setMood(replica, { page: 'fair' })
      await pause(pace.restMs)
    }
  }

  async #reloadFiles(): Promise<void> {
    const { stage, rng, pace } = this.#options
    const { urls } = stage
    while (!this.over) {
      const good = stage.file(300 + this.#files)
      const bad = Object.entries(badFiles(good))
      const [name, text] = bad[rng.integer(bad.length)] ?? ['', '']
      await this.#reload(name, text, false)
      await pause(pace.reloadEveryMs)
      // The last one goes for a while: what runs there finishes, and nothing new is sent.
      await this.#reload('without the last replica', this.#good(urls.slice(0, -1)), true)
      await eventually('the last replica to be gone', 30_000, async () => {
        return Object.keys(await stage.states()).length < urls.length
      })
      await this.#reload('with all replicas', this.#good(urls), true)
      await pause(pace.reloadEveryMs)
    }
  }

  #good(replicas: readonly string[]): string {
    this.#files += 1
    return this.#options.stage.file(300 + this.#files, replicas)
  }

  async #reload(file: string, text: string, good: boolean): Promise<void> {
    const { stage, rng } = this.#options
    const how = HOWS[rng.integer(HOWS.length)] ?? 'watch'
    const digestBefore = digestOf(await stage.metrics())
    await stage.write(text)
    if (how === 'signal') stage.sluice.kill('SIGHUP')
    if (how === 'request') await fetch(`${stage.adminUrl}/-/reload`, { method: 'POST' })
    const reload: Reload = { file, good, how, digestBefore, digestAfter: digestBefore, succeeded: false }
    this.reloads.push(reload)
    await eventually(`${file} to be taken or refused`, 10_000, async () => {
      const page = await stage.metrics()
      reload.digestAfter = digestOf(page)
      reload.succeeded = page.includes('sluice_config_last_reload_successful 1')
      return good ? reload.digestAfter !== digestBefore : !reload.succeeded
    }).catch(() => undefined)
  }
}

export function takesWork(state: string): boolean {
  return state === 'live' || state === 'ramping'
}

function digestOf(page: string): string {
  return /^sluice_config_info\{digest="([^"]*)"/m.exec(page)?.[1] ?? ''
}

function shuffled<T>(all: readonly T[], rng: Rng): T[] {
  return all
    .map((one) => ({ one, at: rng.uniform() }))
    .sort((a, b) => a.at - b.at)
    .map(({ one }) => one)
}

function pause(forMs: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, forMs))
}
