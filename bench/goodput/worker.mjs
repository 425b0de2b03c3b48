/** A thread that runs one job after the other: posts `{ id, result }` or `{ id, error }` for each `{ id, job, spec }`. */
import { parentPort } from 'node:worker_threads'
import { capacityOf, runCell } from './cell.mjs'

const JOBS = { cell: runCell, capacity: capacityOf }

parentPort.on('message', ({ id, job, spec }) => {
  try {
    parentPort.postMessage({ id, result: JOBS[job](spec) })
  } catch (error) {
    parentPort.postMessage({ id, error: String(error?.stack ?? error) })
  }
})
