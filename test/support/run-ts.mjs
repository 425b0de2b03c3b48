/** Loaded with `--import`: lets Node run the TypeScript of this repository where no test runner is. */
import { register } from 'node:module'

register('./ts-hooks.mjs', import.meta.url)
