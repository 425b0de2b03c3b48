/** The contract of an engine kind: its paths, its load page, its frames and its refusals. Text in, values out. */
import type { Usage } from '../core/events.ts'
import type { EngineLimits, ReplicaGauges } from '../core/replica.ts'

export type EngineKind = 'vllm' | 'sglang' | 'tgi' | 'llamacpp' | 'openai'

/** The wire dialect of a route: how its frames and its errors look. */
export type Dialect = 'openai' | 'responses' | 'anthropic' | 'tgi'

/** A route by its name; its path is the same at Sluice and at every engine that has it. */
export type RouteKey =
  | 'chat'
  | 'completions'
  | 'responses'
  | 'messages'
  | 'generate'
  | 'generate_stream'
  | 'embeddings'
  | 'tokenize'
  | 'detokenize'

/** What one metrics page said. `undefined` fields were not on it; a page without any known gauge is no data at all. */
export interface LoadSample {
  readonly gauges: Omit<ReplicaGauges, 'seenAtMs'>
  readonly limits: EngineLimits
  readonly asleep: boolean
  /** Start of the engine process in Unix seconds, when the page has it; a change means a restart. */
  readonly processStartSec?: number
  /** Work done since the engine's start, in steps or tokens; a fall means a restart, a standstill under load a hang. */
  readonly progressTotal?: number
}

/** How a whole response that is no stream of content is to be taken. */
export type ResponseClass =
  | 'ok'
  /** The engine's own queue is full (429, 503, or such an error event): another replica may take it. */
  | 'full'
  /** The engine is going down, or not up yet, and says so: another replica may take it, and this one gets nothing new. */
  | 'draining'
  /** The client's fault: passed on unchanged. */
  | 'client_error'
  /** The engine's fault. */
  | 'engine_error'

/** What a piece of stream showed. Offsets are into the bytes fed. */
export interface TapEvent {
  /** Content frames (text, reasoning, tool call) that ended in this piece. */
  readonly contentEvents: number
  /** Whether a frame before any content told of an error; then `errorClass` says how to take it. */
  readonly error?: { readonly class: ResponseClass; readonly type: string; readonly message: string }
  readonly usage?: Usage
  /** The stream's own end marker has been seen. */
  readonly done: boolean
  /** Frames too long to be looked into that were met in this piece; each is taken for one content event if it may be one. */
  readonly oversizedFrames?: number
}

/**
 * Reads a stream beside its bytes, cut anywhere. `feed` returns the bytes to pass on: the very same ones, unless a
 * usage frame that the client did not ask for has to be taken out.
 */
export interface StreamTap {
  feed(bytes: Uint8Array): { readonly pass: readonly Uint8Array[]; readonly event: TapEvent }
  /** To be called once at the end of the body: what was held back and what an unterminated last frame said. */
  end(): { readonly pass: readonly Uint8Array[]; readonly event: TapEvent }
  /** Why the generation ended, in the engine's word (of the last choice that ended); known once the stream is over. */
  readonly finishReason: string | undefined
  /**
   * The engine has said why the generation ended, and nothing generated came behind that; known once the stream is over.
   * In a message that is whole it stands for the end marker, which some servers leave out.
   */
  readonly generationEnded: boolean
  /** True when the bytes passed on so far end between two frames, where a comment may be put. */
  readonly betweenFrames: boolean
}

/** What a whole response said of itself, where it did. */
export interface WholeReading {
  readonly usage?: Usage | undefined
  readonly finishReason?: string | undefined
}

export interface TapOptions {
  readonly dialect: Dialect
  /** Take the usage frame out again, since we asked for it and the client did not. */
  readonly stripUsage: boolean
}

/** Fields that Sluice changes in a client's body: set to a JSON text, or removed when undefined. */
export type BodyEdits = Readonly<Record<string, string | undefined>>

/** Names in lower case. */
export type ResponseHeaders = Readonly<Record<string, string | string[]>>

export interface EngineAdapter {
  readonly kind: EngineKind
  /** Pages that tell of load, best first; a build or its flags may leave some of them out. None: `healthPath` is looked at. */
  readonly loadPaths: readonly string[]
  /** Pages that tell the engine's limits; asked once in each life of the engine. */
  readonly limitsPaths: readonly string[]
  readonly healthPath: string
  /** Routes that the engine itself answers: requests of others are not sent to it. */
  readonly routes: readonly RouteKey[]
  /** Top-level body fields and headers that only Sluice may set towards this engine. */
  readonly ownedFields: readonly string[]
  readonly ownedHeaders: readonly string[]
  /**
   * The engine's own scheduling field for a request of that urgency (a whole number, more is sooner, 0 is a request
   * without a promise); absent when the engine has none. Only for engines that were started with priority scheduling.
   */
  priorityEdit?(urgency: number): BodyEdits
  /** Reads any of `loadPaths`, metrics text in one forward walk; undefined when it shows no gauge of this engine. */
  parseLoad(page: string): LoadSample | undefined
  /** Reads any of `limitsPaths`; empty when it tells none. */
  parseLimits(page: string, servedName: string): EngineLimits
  createTap(options: TapOptions): StreamTap
  /** Reads a whole, not streamed response: its body, and what the engine counts in its headers. */
  readWhole(dialect: Dialect, body: Uint8Array, headers?: ResponseHeaders): WholeReading
  /** Judges a response by status and (the beginning of) its body. */
  classify(status: number, body: Uint8Array): { readonly class: ResponseClass; readonly message: string }
  /** The smallest generation that proves the engine works. */
  probe(servedName: string): { readonly path: string; readonly body: string }
}
