/** Peer: HAProxy with one thread, least connections and shared upstream sockets; skipped when it is not installed. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { findProgram } from './installed.mjs'

export const missingHaproxy = () =>
  findProgram('haproxy') === undefined
    ? 'haproxy is not installed (Debian: apt-get install haproxy)'
    : undefined

/**
 * Writes HAProxy's file and gives the command that runs it. With `maxconn` an engine has no more requests than that at
 * once, and further ones wait `queueMs` for a place. `reuse` says who may share its sockets to the engines.
 */
export function haproxyCommand({ port, upstreamPorts, workDir, reuse = 'always', maxconn, queueMs }) {
  const file = join(workDir, 'haproxy.cfg')
  writeFileSync(file, config({ port, upstreamPorts, reuse, maxconn, queueMs }))
  return [findProgram('haproxy'), '-db', '-f', file]
}

const config = ({ port, upstreamPorts, reuse, maxconn, queueMs }) => `global
  nbthread 1
  maxconn 8000
defaults
  mode http
  timeout connect 5s
  timeout client 300s
  timeout server 300s
${queueMs === undefined ? '' : `  timeout queue ${queueMs}ms\n`}  option http-no-delay
  http-reuse ${reuse}
frontend bench
  bind 127.0.0.1:${port}
  default_backend engines
backend engines
  balance leastconn
${upstreamPorts.map((upstreamPort, index) => `  server engine${index} 127.0.0.1:${upstreamPort}${maxconn === undefined ? '' : ` maxconn ${maxconn}`}`).join('\n')}
`

export const haproxy = {
  name: 'haproxy',
  missing: missingHaproxy,
  command: ({ port, upstreamPorts, workDir }) => haproxyCommand({ port, upstreamPorts, workDir }),
}
