/** Peer: Sluice itself, enforcing, with one class whose targets nothing here misses. */
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { MAIN } from '../processes.mjs'

const config = ({ port, adminPort, upstreamPorts, model, engineArgs, workers }) => `listen: 127.0.0.1:${port}
admin:
  listen: 127.0.0.1:${adminPort}
mode: enforce
workers: ${workers}
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
  missing: () => (existsSync(MAIN) ? undefined : 'dist/cli/main.js is missing: run `npm run build` first'),
  command({ workDir, nodeArgs = [], model = 'bench', engineArgs = {}, workers = 1, ...ports }) {
    const file = join(workDir, 'sluice.yaml')
    writeFileSync(file, config({ ...ports, model, engineArgs, workers }))
    return [process.execPath, ...nodeArgs, MAIN, 'serve', '-c', file]
  },
}
