/** Reads the logs that `sluice replay` is given: files and standard input, gzipped or plain, one line at a time. */
import { LogBook, type Logged, type Span } from '../replay/log-book.ts'
import { chunksOf, linesOf, unpacked } from './lines.ts'
import type { Terminal } from './terminal.ts'

/** Longer than any request line. */
const LONGEST_LINE_CHARS = 2 ** 20
const PROGRESS_LINES = 500_000

/** What was read, and what was odd about the files themselves. */
export interface ReadLogs {
  readonly logged: Logged
  readonly remarks: readonly string[]
}

/** `-` is standard input. Throws a RangeError when a file can't be read, or when there is nothing to replay. */
export async function readLogs(
  files: readonly string[],
  span: Partial<Span>,
  terminal: Terminal,
): Promise<ReadLogs> {
  const book = new LogBook(span)
  const remarks: string[] = []
  for (const file of files) {
    const remark = await readLog(file, book, terminal)
    if (remark !== undefined) remarks.push(remark)
  }
  const logged = book.close()
  if (logged.requests.length === 0) throw new RangeError(whyEmpty(files, logged))
  return { logged, remarks }
}

/** Undefined when the whole file was read. */
async function readLog(file: string, book: LogBook, terminal: Terminal): Promise<string | undefined> {
  let number = 0
  try {
    const chunks = file === '-' ? unpacked(terminal.stdin ?? process.stdin) : chunksOf(file)
    for await (const line of linesOf(chunks, LONGEST_LINE_CHARS)) {
      number++
      const at = `${file}:${number}`
      if (line === undefined) book.skip(at, `more than ${LONGEST_LINE_CHARS} characters`)
      else book.take(number === 1 ? line.replace(/^\uFEFF/, '') : line, at)
      if (number % PROGRESS_LINES === 0) terminal.err(`  ${file}: ${number} lines…\n`)
    }
    return undefined
  } catch (error) {
    if (error instanceof RangeError) throw error
    const { code, message } = error as NodeJS.ErrnoException
    // A log that is being written, or was cut while it was packed: what was read of it is good.
    if (code === 'Z_BUF_ERROR') return `${file} is cut off after line ${number}`
    throw new RangeError(`${file}: ${code === 'ENOENT' ? 'there is no such file' : message}`)
  }
}

function whyEmpty(files: readonly string[], { outsideSpan, seen, lines, badExamples }: Logged): string {
  const names = files.join(', ')
  if (outsideSpan > 0) {
    const [from, to] = [seen.fromMs, seen.toMs].map((unixMs) => new Date(unixMs).toISOString())
    return `${names}: none of ${outsideSpan} requests lies between --from and --to; they came from ${from} to ${to}`
  }
  const [first] = badExamples
  const why = first === undefined ? '' : ` (${first.at}: ${first.why})`
  return `${names}: no finished request in ${lines} lines${why}; \`sluice serve\` writes a line for each to its standard output`
}
