/** Peer: Sluice itself, enforcing, with one class whose targets nothing here misses. */
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const main = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))

const config = (port, adminPort, upstreamPorts, model, engineArgs) => `listen: 127.0.0.1:${port}
admin:
  listen: 127.0.0.1:${adminPort}
mode: enforce
models:
  - name: ${model}
    engine_args: ${JSON.stringify(engineArgs)}
    replicas:
${upstreamPorts.map((upstreamPort) => `      - http://127.0.0.1:${upstreamPort}`).join('\n')}
classes:
  chat: { ttft: 30s, tpot: 5s }
default_class: chat
auth: none
`

export const sluice = {
  name: 'sluice',
  compiles: true,
  missing: () => (existsSync(main) ? undefined : 'dist/cli/main.js is missing: run `npm run build` first'),
  command({ port, adminPort, upstreamPorts, workDir, model = 'bench', engineArgs = {}, nodeArgs = [] }) {
    const file = join(workDir, 'sluice.yaml')
    writeFileSync(file, config(port, adminPort, upstreamPorts, model, engineArgs))
    return [process.execPath, ...nodeArgs, main, 'serve', '-c', file]
  },
}
