/**
 * Loaded with `--import` into a process under test: answers over IPC what that process and those that it has started hold
 * together, after a full collection. It changes nothing that is measured but for its own channel, and ends the process
 * when the parent is gone. The processes that it starts have a channel and an end of their own, which it leaves alone.
 */
import { subscribe } from 'node:diagnostics_channel'
import { EventEmitter } from 'node:events'
import { Session } from 'node:inspector'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc')

/** What one object of a class adds to the sum; those that only look like one of the class throw and add nothing. */
const SUMS = {
  listeners: [
    EventEmitter,
    `Object.values(one._events ?? {}).reduce((sum, found) => sum + (typeof found === 'function' ? 1 : (found?.length ?? 0)), 0)`,
  ],
  mapEntries: [Map, 'one.size'],
  setEntries: [Set, 'one.size'],
  timers: [timeoutClass(), 'one._destroyed === false ? 1 : 0'],
}

/** `this` is the array of all objects of the class. */
const summing = (added) => `function () {
  let sum = 0
  for (const one of this) try { sum += ${added} } catch {}
  return sum
}`

function timeoutClass() {
  const timeout = setTimeout(() => {}, 1)
  clearTimeout(timeout)
  return timeout.constructor
}

/** Walks the heap as the inspector does; the objects found are let go of before it returns. */
function heapSums() {
  const session = new Session()
  session.connect()
  const post = (method, params) => {
    let answer
    session.post(method, params, (error, result) => {
      if (error) throw new Error(`${method}: ${error.message}`)
      answer = result
    })
    return answer
  }
  const sums = {}
  try {
    for (const [name, [type, added]] of Object.entries(SUMS)) {
      globalThis.__probed = type.prototype
      const objectGroup = 'probe'
      const { result } = post('Runtime.evaluate', { expression: '__probed', objectGroup })
      const { objects } = post('Runtime.queryObjects', { prototypeObjectId: result.objectId, objectGroup })
      const summed = post('Runtime.callFunctionOn', {
        functionDeclaration: summing(added),
        objectId: objects.objectId,
        returnByValue: true,
        objectGroup,
      })
      if (summed.exceptionDetails)
        throw new Error(`${name}: ${summed.exceptionDetails.exception?.description}`)
      sums[name] = summed.result.value
      post('Runtime.releaseObjectGroup', { objectGroup })
    }
  } finally {
    globalThis.__probed = undefined
    session.disconnect()
  }
  return sums
}

const cpuUsedSec = () => {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1e6
}
/** What these questions themselves have used. */
let askedSec = 0

function holdings() {
  const atSec = cpuUsedSec()
  const cpuSec = atSec - askedSec
  const sums = heapSums()
  collect()
  const { rss, heapUsed, external } = process.memoryUsage()
  const handles = {}
  for (const type of process.getActiveResourcesInfo()) handles[type] = (handles[type] ?? 0) + 1
  askedSec += cpuUsedSec() - atSec
  return {
    processes: 1,
    cpuSec,
    rssBytes: rss,
    heapBytes: heapUsed,
    externalBytes: external,
    handles,
    ...sums,
  }
}

const children = new Set()
subscribe('child_process', ({ process: child }) => {
  children.add(child)
  child.once('exit', () => children.delete(child))
})

let lastId = 0
/** Its own listeners hear question and answer too, and know neither. */
function heldBy(child) {
  const asked = `probe ${++lastId}`
  return new Promise((resolve) => {
    const hear = ({ id, answer }) => {
      if (id !== asked) return
      child.off('message', hear)
      resolve(answer)
    }
    child.on('message', hear)
    child.send({ id: asked, kind: 'holdings' }, () => {})
  })
}

function added(a, b) {
  const { handles: more, ...counts } = b
  const handles = { ...a.handles }
  for (const [type, count] of Object.entries(more)) handles[type] = (handles[type] ?? 0) + count
  const sums = Object.entries(counts).map(([name, count]) => [name, a[name] + count])
  return { ...Object.fromEntries(sums), handles }
}

async function heldByAll() {
  const others = [...children].filter(({ connected }) => connected).map(heldBy)
  return (await Promise.all([holdings(), ...others])).reduce(added)
}

process.on('message', async ({ id, kind }) => {
  if (kind === 'holdings') process.send?.({ id, answer: await heldByAll() })
})

const IS_A_CHILD = 'SLUICE_PROBED_PARENT'
if (process.env[IS_A_CHILD] === undefined) {
  process.env[IS_A_CHILD] = String(process.pid)
  process.once('disconnect', () => process.exit(0))
  process.channel?.unref()
}
