/** What is wrong with a file, where, and what to write instead. */

/** Keys and list positions from the root of the file. */
export type Path = readonly (string | number)[]

export interface Problem {
  readonly severity: 'error' | 'warning'
  readonly file: string
  /** Both from 1. */
  readonly line: number
  readonly column: number
  /** Where in the file's structure, e.g. `classes.chat.ttft`; empty for the file as a whole. */
  readonly path: string
  readonly message: string
  readonly suggestion?: string
}

/** Writes a path as people say it: `models[0].replicas[1].url`. */
export function formatPath(path: Path): string {
  let text = ''
  for (const step of path) {
    if (typeof step === 'number') text += `[${step}]`
    else text += text === '' ? step : `.${step}`
  }
  return text
}

/** One line, with a position that editors and terminals follow. */
export function formatProblem(problem: Problem): string {
  const { file, line, column, severity, path, message, suggestion } = problem
  const where = path === '' ? '' : `${path}: `
  const advice = suggestion === undefined ? '' : `; ${suggestion}`
  return `${file}:${line}:${column}: ${severity}: ${where}${message}${advice}`
}

/** By place in the file, errors before warnings at the same place. */
export function inFileOrder(problems: readonly Problem[]): readonly Problem[] {
  return [...problems].sort(
    (a, b) => a.line - b.line || a.column - b.column || a.severity.localeCompare(b.severity),
  )
}
