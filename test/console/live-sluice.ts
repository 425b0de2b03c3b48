/** A whole Sluice as `serve` starts it, in front of simulated engines in real time, for a browser or a terminal to look at. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Running, startSluice } from '../../src/cli/serve.ts'
import { readConfig } from '../../src/config/read.ts'
import { type RunningEngine, startEngine } from '../../src/emulator/start.ts'
import { until } from '../support/deadline.ts'

export interface LiveSluice {
  readonly adminUrl: string
  readonly running: Running
  /** Sends one streamed chat request and takes its whole answer; resolves with its status. */
  request(id: string): Promise<number>
  /** Writes the file anew and reloads it. */
  reload(yaml: string): Promise<void>
  close(): Promise<void>
}

/** `yaml`: what the file says beside `listen`, `admin` and `models`. */
export async function startLiveSluice(yaml: string): Promise<LiveSluice> {
  const engines = await Promise.all(
    [0, 1].map(() => startEngine({ profile: 'demo/slow', speed: 20, servedModelNames: ['tiny'] })),
  )
  const folder = await mkdtemp(join(tmpdir(), 'sluice-console-'))
  const path = join(folder, 'sluice.yaml')
  const write = (text: string) => writeFile(path, fileOf(engines, text))
  await write(yaml)
  const loaded = await readConfig(path, { env: {} })
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems))
  const anywhere = { host: '127.0.0.1', port: 0 }
  const config = { ...loaded.config, listen: anywhere, admin: { ...loaded.config.admin, listen: anywhere } }
  const running = await startSluice({ config, path, env: {}, logLevel: 'silent' })
  await until(
    () => running.runtime.fleet.reports().every(({ state }) => state === 'live' || state === 'ramping'),
    'every replica to take work',
  )
  return {
    adminUrl: `http://127.0.0.1:${running.adminPort}`,
    running,
    async request(id) {
      const answer = await fetch(`http://127.0.0.1:${running.port}/v1/chat/completions`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-request-id': id },
        body: JSON.stringify({
          model: 'tiny',
          stream: true,
          max_tokens: 4,
          messages: [{ role: 'user', content: 'a prompt that must never be shown' }],
        }),
      })
      await answer.text()
      return answer.status
    },
    async reload(text) {
      await write(text)
      await running.reload('request')
    },
    async close() {
      await running.close()
      await Promise.all(engines.map((engine) => engine.close()))
      await rm(folder, { recursive: true, force: true })
    },
  }
}

function fileOf(engines: readonly RunningEngine[], yaml: string): string {
  const replicas = engines.map(({ url }) => `      - ${url}`).join('\n')
  return `listen: 127.0.0.1:18080\nadmin: { listen: 127.0.0.1:19090 }\nmodels:\n  - name: tiny\n    replicas:\n${replicas}\n${yaml}`
}
