/** Peer: nginx with one worker, no buffering and kept upstream sockets; skipped when it is not installed. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { findProgram } from './installed.mjs'

const config = (port, upstreamPorts, workDir) => `daemon off;
worker_processes 1;
pid ${workDir}/nginx.pid;
error_log ${workDir}/nginx.err;
events { worker_connections 8192; }
http {
  access_log off;
  client_body_temp_path ${workDir}/body;
  proxy_temp_path ${workDir}/proxy;
  fastcgi_temp_path ${workDir}/fastcgi;
  uwsgi_temp_path ${workDir}/uwsgi;
  scgi_temp_path ${workDir}/scgi;
  client_max_body_size 64m;
  client_body_buffer_size 256k;
  keepalive_requests 1000000;
  upstream engines {
    least_conn;
    ${upstreamPorts.map((upstreamPort) => `server 127.0.0.1:${upstreamPort};`).join(' ')}
    keepalive 1024;
  }
  server {
    listen 127.0.0.1:${port} backlog=4096;
    location / {
      proxy_pass http://engines;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_buffering off;
      proxy_read_timeout 300s;
    }
  }
}
`

export const nginx = {
  name: 'nginx',
  missing: () =>
    findProgram('nginx') === undefined ? 'nginx is not installed (Debian: apt-get install nginx)' : undefined,
  command({ port, upstreamPorts, workDir }) {
    const file = join(workDir, 'nginx.conf')
    writeFileSync(file, config(port, upstreamPorts, workDir))
    return [findProgram('nginx'), '-c', file, '-p', workDir]
  },
}
