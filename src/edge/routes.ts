/** The traffic port's allow-list: every path that is judged and relayed, and how its bodies are to be read. */
import type { RequestKind } from '../core/request.ts'
import type { Dialect, RouteKey } from '../engines/adapter.ts'

export interface Route {
  /** Both ours and the engine's. */
  readonly path: string
  /** Names learnt output lengths and logs. */
  readonly key: RouteKey
  readonly dialect: Dialect
  readonly kind: RequestKind
  /** Whether `x-api-key` may carry the key, as that dialect's SDKs do. */
  readonly apiKeyHeader: boolean
  /** Whether `stream_options.include_usage` exists here. */
  readonly usageOption: boolean
}

const route = (
  path: string,
  key: RouteKey,
  dialect: Dialect,
  rest: Partial<Pick<Route, 'kind' | 'apiKeyHeader' | 'usageOption'>> = {},
): Route => ({ path, key, dialect, kind: 'generate', apiKeyHeader: false, usageOption: false, ...rest })

export const ROUTES: readonly Route[] = [
  route('/v1/chat/completions', 'chat', 'openai', { usageOption: true }),
  route('/v1/completions', 'completions', 'openai', { usageOption: true }),
  route('/v1/responses', 'responses', 'responses'),
  route('/v1/messages', 'messages', 'anthropic', { apiKeyHeader: true }),
  route('/generate', 'generate', 'tgi'),
  route('/generate_stream', 'generate_stream', 'tgi'),
  route('/v1/embeddings', 'embeddings', 'openai', { kind: 'compute' }),
  route('/tokenize', 'tokenize', 'openai', { kind: 'convert' }),
  route('/detokenize', 'detokenize', 'openai', { kind: 'convert' }),
]

/** The dialect in which to refuse a path that is not on the list. */
export function dialectOf(path: string): Dialect {
  if (path.startsWith('/v1/messages')) return 'anthropic'
  if (path.startsWith('/v1/responses')) return 'responses'
  return path.startsWith('/generate') ? 'tgi' : 'openai'
}
