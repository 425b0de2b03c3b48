/** Shows problems as a person reads them: the place, the line with a mark under it, and what to write there. */
import pc from 'picocolors'
import type { Problem } from '../config/problem.ts'

/** Lines that may hold a secret are described and not repeated. */
const MAY_BE_SECRET = /\b(key|key_sha256|token|secret|password)\b|\bsk-|:\/\/[^/\s]*@/i
const SECRET_PATH = /(^|\.)(key|token|key_sha256\[\d+\])$/
const WIDEST = 140

/** `text` is the file; without it, or where it may hold a secret, the line itself is left out. */
export function showProblem(problem: Problem, text: string | undefined, colors: boolean): string {
  const paint = pc.createColors(colors)
  const { file, line, column, severity, path, message, suggestion } = problem
  const hue = severity === 'error' ? paint.red : paint.yellow
  const where = path === '' ? '' : `${path}: `
  const head = `${paint.bold(`${file}:${line}:${column}`)}: ${hue(severity)}: ${where}${message}`
  const source = text?.split(/\r?\n/, line)[line - 1]
  if (
    source === undefined ||
    SECRET_PATH.test(path) ||
    MAY_BE_SECRET.test(source) ||
    /[^\t\x20-\uFFFF]/.test(source)
  ) {
    return suggestion === undefined ? `${head}\n` : `${head}\n    ${paint.green(suggestion)}\n`
  }
  const { shown, mark } = cutAround(source, column)
  const gutter = String(line).padStart(5)
  const blank = ' '.repeat(gutter.length)
  const advice = suggestion === undefined ? '' : ` ${paint.green(suggestion)}`
  return `${head}\n${paint.dim(`${gutter} |`)} ${shown}\n${paint.dim(`${blank} |`)} ${mark}${hue('^')}${advice}\n`
}

/** A line as wide as a screen around the column, tabs as single spaces so that the mark stands right. */
function cutAround(source: string, column: number): { readonly shown: string; readonly mark: string } {
  const line = source.replaceAll('\t', ' ')
  const start = column > WIDEST - 20 ? column - 40 : 0
  const shown = `${start > 0 ? '…' : ''}${line.slice(start, start + WIDEST)}`.trimEnd()
  return { shown, mark: ' '.repeat(Math.max(0, column - 1 - start + (start > 0 ? 1 : 0))) }
}
