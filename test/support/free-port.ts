/** Finds a port for a program that can't be told to take any and to say which. */
import { createServer } from 'node:net'
import { listenOnLoopback } from './loopback.ts'

/** A port of loopback that was free a moment ago. */
export async function freePort(): Promise<number> {
  const server = createServer()
  const port = await listenOnLoopback(server)
  await new Promise((resolve) => server.close(resolve))
  return port
}
