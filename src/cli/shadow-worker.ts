/** The thread that replays the last minutes of a shadow: one job in, one answer out. */
import { parentPort, workerData } from 'node:worker_threads'
import { replayShadow } from './replay-run.ts'
import type { ShadowJob } from './shadow-replay.ts'

parentPort?.postMessage(replayShadow(workerData as ShadowJob) ?? null)
