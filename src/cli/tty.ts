/** A terminal to draw on: the whole screen, its size, its keys, and everything put back as it was at the end. */
import { emitKeypressEvents } from 'node:readline'

/** A key that was pressed; `sequence` is what it types. */
export interface Key {
  readonly name?: string | undefined
  readonly sequence?: string | undefined
  readonly ctrl?: boolean
}

/** Stands for the terminal in tests. */
export interface Tty {
  readonly columns: number
  readonly rows: number
  /** Takes the screen over; `onChange` is called when it has another size. */
  open(onKey: (key: Key) => void, onChange: () => void): void
  /** Draws these lines in place of what is there. */
  draw(lines: readonly string[]): void
  /** Gives the screen back. Idempotent. */
  close(): void
}

const ENTER = '\u001b[?1049h\u001b[?25l'
const LEAVE = '\u001b[?25h\u001b[?1049l'
const HOME = '\u001b[H'
const REST_OF_LINE_AWAY = '\u001b[K'
const REST_OF_SCREEN_AWAY = '\u001b[J'

/** The terminal of this process; undefined when either side is none. */
export function systemTty(): Tty | undefined {
  const { stdin, stdout } = process
  if (!stdin.isTTY || !stdout.isTTY) return undefined
  let restore: (() => void) | undefined
  return {
    get columns() {
      return stdout.columns
    },
    get rows() {
      return stdout.rows
    },
    open(onKey, onChange) {
      const onKeypress = (_text: string | undefined, key: Key) => onKey(key)
      emitKeypressEvents(stdin)
      stdin.setRawMode(true).resume().on('keypress', onKeypress)
      stdout.on('resize', onChange).write(ENTER)
      restore = () => {
        restore = undefined
        process.off('exit', close)
        stdin.off('keypress', onKeypress).setRawMode(false).pause()
        stdout.off('resize', onChange).write(LEAVE)
      }
      process.once('exit', close)
    },
    draw(lines) {
      stdout.write(
        `${HOME}${lines.join(`${REST_OF_LINE_AWAY}\r\n`)}${REST_OF_LINE_AWAY}${REST_OF_SCREEN_AWAY}`,
      )
    },
    close,
  }
  function close(): void {
    restore?.()
  }
}
