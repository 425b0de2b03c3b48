/** Engines for prompts and engines for answers behind one address, with the KV going from the ones to the others. */
import type { Ms, Ratio } from '../core/units.ts'
import { EngineModel } from './engine-model.ts'
import type {
  Disaggregation,
  EngineGauges,
  EngineOptions,
  EngineRejection,
  EngineRequest,
  ReplicaEngineOptions,
  SequenceView,
  SimEngine,
  StepReport,
  ToldLimits,
} from './engine-types.ts'

/** The engine that the options describe. Throws a RangeError when they contradict each other. */
export function createEngine(options: ReplicaEngineOptions): SimEngine {
  const { disaggregated, ...engine } = options
  return disaggregated === undefined ? new EngineModel(engine) : new EnginePools(engine, disaggregated)
}

/** KV on its way. */
interface Transfer {
  readonly request: EngineRequest
  readonly arrivesAtMs: Ms
}

/** One engine that computes prompts, and its end of the link. */
interface Prefiller {
  readonly engine: EngineModel
  linkFreeAtMs: Ms
}

/**
 * A request goes to the prompt engine with the smallest backlog, which makes one token that nobody sees; then its KV
 * goes over the link; then the answer engine with the fewest sequences generates all of it (as vLLM's connectors do
 * it: the client's first token comes from the answer engine). Each of the two is a request of its own, with the
 * profile's overhead.
 */
class EnginePools implements SimEngine {
  readonly limits: ToldLimits
  readonly #prefillers: readonly Prefiller[]
  readonly #decoders: readonly EngineModel[]
  readonly #link: Disaggregation
  /** Requests whose prompt is being computed. */
  readonly #prompts = new Map<string, EngineRequest>()
  /** In order of arrival. */
  #transfers: Transfer[] = []

  constructor(options: EngineOptions, link: Disaggregation) {
    if (!(link.prefillEngines >= 1 && link.decodeEngines >= 1)) {
      throw new RangeError('disaggregation needs at least one engine for prompts and one for answers')
    }
    const { seed = 1 } = options
    this.#link = link
    // Far apart, so that engines of neighbouring replicas do not jitter alike.
    const seedOf = (index: number) => seed + 1009 * index
    this.#prefillers = Array.from({ length: link.prefillEngines }, (_, index) => ({
      engine: new EngineModel({ ...options, seed: seedOf(index) }),
      linkFreeAtMs: 0,
    }))
    // The caps are for what clients send; nobody could take back what a decoder refuses.
    const { maxNumQueuedReqs: _reqs, maxNumQueuedTokens: _tokens, ...uncapped } = options
    this.#decoders = Array.from(
      { length: link.decodeEngines },
      (_, index) => new EngineModel({ ...uncapped, seed: seedOf(link.prefillEngines + index) }),
    )
    const [one] = this.#decoders
    if (one === undefined) throw new RangeError('disaggregation needs an engine for answers')
    this.limits = {
      maxNumSeqs: one.limits.maxNumSeqs * link.decodeEngines,
      maxNumBatchedTokens: one.limits.maxNumBatchedTokens,
      prefillEngines: link.prefillEngines,
      kvCapacityTokens: one.limits.kvCapacityTokens * link.decodeEngines,
      maxModelLenTokens: one.limits.maxModelLenTokens,
    }
  }

  submit(request: EngineRequest, nowMs: Ms): EngineRejection | 'accepted' {
    const tooLong = request.outputTokens.some(
      (tokens) => request.promptTokens + tokens > this.limits.maxModelLenTokens,
    )
    if (tooLong) return 'over_context'
    const { engine } = least(this.#prefillers, (prefiller) => prefiller.engine.prefillBacklogTokens)
    const answer = engine.submit({ ...request, outputTokens: [1] }, nowMs)
    if (answer === 'accepted') this.#prompts.set(request.id, request)
    return answer
  }

  abort(requestId: string): boolean {
    const isPrompt = this.#prompts.delete(requestId)
    const inTransfer = this.#transfers.length
    this.#transfers = this.#transfers.filter(({ request }) => request.id !== requestId)
    const aborted = this.#engines().map((engine) => engine.abort(requestId))
    return isPrompt || this.#transfers.length < inTransfer || aborted.includes(true)
  }

  engineMsOf(requestId: string): Ms {
    const moving = this.#transfers.find(({ request }) => request.id === requestId)
    const inside = this.#engines().reduce((sum, engine) => sum + engine.engineMsOf(requestId), 0)
    return inside + (moving?.request.remotePrefill?.engineMs ?? 0)
  }

  nextEventAtMs(): Ms | undefined {
    let nextAtMs = this.#transfers[0]?.arrivesAtMs
    for (const engine of this.#engines()) {
      const atMs = engine.nextEventAtMs()
      if (atMs !== undefined && (nextAtMs === undefined || atMs < nextAtMs)) nextAtMs = atMs
    }
    return nextAtMs
  }

  advanceTo(nowMs: Ms, onStep: (report: StepReport) => void): void {
    for (let atMs = this.nextEventAtMs(); atMs !== undefined && atMs <= nowMs; atMs = this.nextEventAtMs()) {
      this.#deliver(atMs)
      for (const prefiller of this.#prefillers) {
        prefiller.engine.advanceTo(atMs, (report) => {
          for (const sequence of report.finished) this.#send(prefiller, sequence, report.endedAtMs)
          onStep({ ...report, emitted: [], finished: [] })
        })
      }
      for (const engine of this.#decoders) engine.advanceTo(atMs, onStep)
    }
  }

  gauges(): EngineGauges {
    const decoders = this.#decoders.map((engine) => engine.gauges())
    const prefillers = this.#prefillers.map(({ engine }) => engine.gauges())
    const all = [...decoders, ...prefillers]
    const total = (of: (gauges: EngineGauges) => number, over = all) =>
      over.reduce((sum, gauges) => sum + of(gauges), 0)
    const prompts = total(
      ({ runningSequences, waitingSequences }) => runningSequences + waitingSequences,
      prefillers,
    )
    return {
      runningSequences: total((gauges) => gauges.runningSequences, decoders),
      waitingSequences:
        total((gauges) => gauges.waitingSequences, decoders) + prompts + this.#transfers.length,
      kvUsageRatio: total((gauges) => gauges.kvUsageRatio, decoders) / decoders.length,
      preemptionsTotal: total((gauges) => gauges.preemptionsTotal),
      promptTokensTotal: total((gauges) => gauges.promptTokensTotal, decoders),
      generationTokensTotal: total((gauges) => gauges.generationTokensTotal, decoders),
      prefixQueryTokensTotal: total((gauges) => gauges.prefixQueryTokensTotal, prefillers),
      prefixHitTokensTotal: total((gauges) => gauges.prefixHitTokensTotal, prefillers),
      stepsTotal: total((gauges) => gauges.stepsTotal),
      busyMsTotal: total((gauges) => gauges.busyMsTotal),
    }
  }

  setSpeed(ratio: Ratio): void {
    for (const engine of this.#engines()) engine.setSpeed(ratio)
  }

  #engines(): readonly EngineModel[] {
    return [...this.#prefillers.map(({ engine }) => engine), ...this.#decoders]
  }

  /** The prompt is computed: its KV leaves when the link is free. */
  #send(prefiller: Prefiller, sequence: SequenceView, nowMs: Ms): void {
    const request = this.#prompts.get(sequence.requestId)
    if (request === undefined) return
    this.#prompts.delete(request.id)
    const { transferBaseMs, transferPerTokenMs } = this.#link
    const leavesAtMs = Math.max(nowMs, prefiller.linkFreeAtMs)
    const arrivesAtMs = leavesAtMs + transferBaseMs + transferPerTokenMs * request.promptTokens
    prefiller.linkFreeAtMs = arrivesAtMs
    const { cachedTokens, engineMs } = sequence
    const transfer = { request: { ...request, remotePrefill: { cachedTokens, engineMs } }, arrivesAtMs }
    this.#transfers.push(transfer)
    this.#transfers.sort((a, b) => a.arrivesAtMs - b.arrivesAtMs)
  }

  #deliver(nowMs: Ms): void {
    while ((this.#transfers[0]?.arrivesAtMs ?? Number.POSITIVE_INFINITY) <= nowMs) {
      const transfer = this.#transfers.shift()
      if (transfer === undefined) return
      const decoder = least(this.#decoders, (engine) => engine.inFlightSequences)
      decoder.submit(transfer.request, transfer.arrivesAtMs)
    }
  }
}

/** The first of those with the smallest value. */
function least<Item>(items: readonly Item[], of: (item: Item) => number): Item {
  const [first] = items
  if (first === undefined) throw new RangeError('nothing to choose from')
  return items.reduce((best, item) => (of(item) < of(best) ? item : best), first)
}
