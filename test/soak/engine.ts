/** A process with one fast engine that ends each request as it says itself. */
import { answers } from '../support/node-child.ts'
import { UnrulyEngine } from '../support/unruly-engine.ts'

const engine = await new UnrulyEngine().listen()
answers({ open: () => engine.openExchanges })
process.stderr.write(`unruly engine on ${engine.url}\n`)
