/** Opens and closes listening sockets, with faults that say which address could not be had. */
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Address } from '../config/config.ts'
import { formatAddress } from '../config/units.ts'

/** Listens and returns the port, which is chosen by the system for port 0. `key` names the address in faults. */
export async function listen(server: Server, address: Address, key: string): Promise<number> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      const why = error.code === 'EADDRINUSE' ? 'something else listens there already' : error.message
      reject(new Error(`${key}: can't listen on ${formatAddress(address)}: ${why}`, { cause: error }))
    })
    server.listen(address.port, address.host, resolve)
  })
  return (server.address() as AddressInfo).port
}

/** Closes at once: idle and busy connections end too. */
export async function closeServer(server: Server): Promise<void> {
  if (!server.listening) return
  const closed = new Promise<void>((resolve) => server.close(() => resolve()))
  server.closeAllConnections()
  await closed
}
