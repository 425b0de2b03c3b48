/** A terminal inside tmux on a server of its own, so that a program is seen as a person would see it. */
import { execFileSync, spawnSync } from 'node:child_process'
import { until } from '../support/deadline.ts'

/** Whether this machine has it; tests without one are skipped, loudly. */
export const HAS_TMUX = spawnSync('tmux', ['-V']).status === 0

if (!HAS_TMUX) console.warn('SKIPPED: no tmux. `apt-get install tmux`')

export class TmuxScreen {
  readonly #socket = `sluice-test-${process.pid}`

  constructor(columns: number, rows: number, command: string, env: Readonly<Record<string, string>>) {
    const set = Object.entries(env).flatMap(([name, value]) => ['-e', `${name}=${value}`])
    this.#tmux('new-session', '-d', '-x', String(columns), '-y', String(rows), ...set, command)
  }

  text(): string {
    return this.#tmux('capture-pane', '-p')
  }

  keys(...keys: string[]): void {
    this.#tmux('send-keys', ...keys)
  }

  resize(columns: number, rows: number): void {
    this.#tmux('resize-window', '-x', String(columns), '-y', String(rows))
  }

  /** Its text as soon as it shows what is wanted. */
  async shows(wanted: string | RegExp | ((text: string) => boolean)): Promise<string> {
    let text = ''
    const holds = () => {
      text = this.text()
      if (typeof wanted === 'function') return wanted(text)
      return typeof wanted === 'string' ? text.includes(wanted) : wanted.test(text)
    }
    await until(holds, `the terminal to show ${wanted}`, 20_000).catch((error: Error) => {
      throw new Error(`${error.message}; it shows\n${text}`)
    })
    return text
  }

  /** What tmux says of the pane, e.g. `cursor_flag`, `alternate_on`. */
  fact(name: string): string {
    return this.#tmux('display-message', '-p', `#{${name}}`).trim()
  }

  close(): void {
    this.#tmux('kill-server')
  }

  #tmux(...args: string[]): string {
    return execFileSync('tmux', ['-L', this.#socket, '-f', '/dev/null', ...args], { encoding: 'utf8' })
  }
}
