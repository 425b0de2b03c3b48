/** Opens and closes listening sockets, with faults that say which address could not be had. */
import type { Server as HttpServer } from 'node:http'
import type { AddressInfo, Server } from 'node:net'
import type { Address } from '../config/config.ts'
import { formatAddress } from '../config/units.ts'

const REASONS: Readonly<Record<string, string>> = {
  EADDRINUSE: 'something else listens there already; stop it, or choose another port',
  EADDRNOTAVAIL: 'this machine has no such address',
  ENOTFOUND: 'this host is not known',
  EACCES: 'that port is for privileged users; choose one above 1023',
}

/** What to say when an address can't be had. */
export function listenFault(error: NodeJS.ErrnoException, address: Address, key: string): Error {
  const why = REASONS[error.code ?? ''] ?? error.message
  return new Error(`${key}: can't listen on ${formatAddress(address)}: ${why}`, { cause: error })
}

/** Listens and returns the port, which is chosen by the system for port 0. `key` names the address in faults. */
export async function listen(server: Server, address: Address, key: string): Promise<number> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => reject(listenFault(error, address, key)))
    server.listen(address.port, address.host, resolve)
  })
  return (server.address() as AddressInfo).port
}

/** Closes at once: idle and busy connections end too. */
export async function closeServer(
  server: Server & Partial<Pick<HttpServer, 'closeAllConnections'>>,
): Promise<void> {
  if (!server.listening) return
  const closed = new Promise<void>((resolve) => server.close(() => resolve()))
  server.closeAllConnections?.()
  await closed
}
