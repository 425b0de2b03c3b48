/** Every wire dialect by name. */
import type { Dialect } from './adapter.ts'
import type { DialectReader } from './dialect.ts'
import { anthropicReader } from './dialect-anthropic.ts'
import { openaiReader } from './dialect-openai.ts'
import { responsesReader } from './dialect-responses.ts'
import { tgiReader } from './dialect-tgi.ts'

/** The reader of a dialect; one per stream, since it may remember what hit last. */
export function dialectReader(dialect: Dialect): DialectReader {
  switch (dialect) {
    case 'openai':
      return openaiReader()
    case 'responses':
      return responsesReader()
    case 'anthropic':
      return anthropicReader()
    case 'tgi':
      return tgiReader()
    default:
      return dialect satisfies never
  }
}
