/** Says whether a program is on the PATH. */
import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'

/** The program's path, or undefined. Debian keeps daemons in sbin, which users' PATH often lacks. */
export function findProgram(name) {
  for (const folder of [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin', '/usr/local/sbin']) {
    try {
      accessSync(join(folder, name), constants.X_OK)
      return join(folder, name)
    } catch {
      // Not in this folder.
    }
  }
  return undefined
}
