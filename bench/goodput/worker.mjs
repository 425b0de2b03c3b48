/** A thread that runs one job after the other: posts `{ id, result }` or `{ id, error }` for each `{ id, job, spec }`. */
import { parentPort, workerData } from 'node:worker_threads'
import { profile } from '../../dist/sim/profiles.js'
import { armOf } from './arms.mjs'
import { boundOf } from './bounds-of-run.mjs'
import { capacityOf, replay, runCell } from './cell.mjs'
import { useTraces } from './requests.mjs'

useTraces(workerData.traces)

const JOBS = {
  capacity: capacityOf,
  bound: boundOf,
  cell: async (spec) => runCell(spec, await makerOf(spec)),
  replay: async (spec) => replay(spec, await makerOf(spec)),
}

/** `make(requests)` of the spec's arm in its setting. */
async function makerOf({ arm, setting = {}, scenario }) {
  const { module, make } = armOf(arm)
  const loaded = await import(module)
  const { prefill, requestOverheadMs } = profile(scenario.profile)
  const solo = {
    soloBaseMs: prefill.floorMs + requestOverheadMs,
    soloPerTokenMs: prefill.perTokenMs,
  }
  return (requests) => make(loaded, setting, { arm, scenario, requests, solo })
}

parentPort.on('message', async ({ id, job, spec }) => {
  try {
    parentPort.postMessage({ id, result: await JOBS[job](spec) })
  } catch (error) {
    parentPort.postMessage({ id, error: String(error?.stack ?? error) })
  }
})
