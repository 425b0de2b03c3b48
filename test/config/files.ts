/** Files and shortcuts for the tests of the configuration. */
import type { Config } from '../../src/config/config.ts'
import { type LoadOptions, type LoadResult, loadConfig } from '../../src/config/load.ts'
import type { Problem } from '../../src/config/problem.ts'

export const HASH_A = 'ca978112ca1bbdcafac231b39a23dc4da786eff8147c4f72b9807785afee48bb'
export const HASH_B = '3e23e8160039594a33894f6564e1b1348bbd7a0088d42c4acb73eeaed59c009d'

/** The least that is valid. */
export const MINIMAL = `models:
  - { name: llama, replicas: [http://10.0.0.11:8000] }
auth: none
`

export function load(text: string, options: Partial<LoadOptions> = {}): LoadResult {
  return loadConfig(text, { fileName: 'sluice.yaml', env: {}, ...options })
}

/** The configuration; fails the test with the problems when there is none. */
export function loaded(text: string, options: Partial<LoadOptions> = {}): Config {
  const result = load(text, options)
  if (!result.ok) throw new Error(JSON.stringify(result.problems, undefined, 2))
  return result.config
}

export function problemsOf(result: LoadResult): readonly Problem[] {
  return result.ok ? result.warnings : result.problems
}

/** One profile that is known, and what an idle replica of it needs. */
export const profiles = {
  ids: ['known/gpu'],
  floorTtftMs: (id: string) => (id === 'known/gpu' ? 40 : undefined),
  floorTpotMs: (id: string) => (id === 'known/gpu' ? 8.25 : undefined),
}
