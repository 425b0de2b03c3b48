/** A process with fast engines that end each request as it says itself. Usage: engines.ts COUNT. */
import { answers } from '../support/node-child.ts'
import { UnrulyEngine } from '../support/unruly-engine.ts'

const engines = Array.from({ length: Number(process.argv[2]) }, () => new UnrulyEngine())
await Promise.all(engines.map((engine) => engine.listen()))
answers({ open: () => engines.reduce((sum, { openExchanges }) => sum + openExchanges, 0) })
process.stderr.write(`unruly engines on ${engines.map(({ url }) => url).join(' ')}\n`)
