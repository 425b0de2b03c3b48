/** Peer: HAProxy with one thread, least connections and shared upstream sockets; skipped when it is not installed. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { findProgram } from './installed.mjs'

const config = (port, upstreamPorts) => `global
  nbthread 1
  maxconn 8000
defaults
  mode http
  timeout connect 5s
  timeout client 300s
  timeout server 300s
  option http-no-delay
  http-reuse always
frontend bench
  bind 127.0.0.1:${port}
  default_backend engines
backend engines
  balance leastconn
${upstreamPorts.map((upstreamPort, index) => `  server engine${index} 127.0.0.1:${upstreamPort}`).join('\n')}
`

export const haproxy = {
  name: 'haproxy',
  missing: () =>
    findProgram('haproxy') === undefined
      ? 'haproxy is not installed (Debian: apt-get install haproxy)'
      : undefined,
  command({ port, upstreamPorts, workDir }) {
    const file = join(workDir, 'haproxy.cfg')
    writeFileSync(file, config(port, upstreamPorts))
    return [findProgram('haproxy'), '-db', '-f', file]
  },
}
