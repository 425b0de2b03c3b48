/** Module hooks that take the types out of each `.ts` file as it is loaded; nothing is checked. */
import { readFile } from 'node:fs/promises'
import ts from 'typescript'

const compilerOptions = {
  module: ts.ModuleKind.ESNext,
  target: ts.ScriptTarget.ES2023,
  verbatimModuleSyntax: true,
  inlineSourceMap: true,
}

export async function load(url, context, next) {
  if (!url.startsWith('file:') || !url.endsWith('.ts')) return next(url, context)
  const { outputText } = ts.transpileModule(await readFile(new URL(url), 'utf8'), {
    compilerOptions,
    fileName: url,
  })
  return { format: 'module', source: outputText, shortCircuit: true }
}
