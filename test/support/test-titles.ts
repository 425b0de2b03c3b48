/** Reads from the source of a test file the titles of the tests and groups that run. */
import ts from 'typescript'

const OPENERS = ['it', 'test', 'describe']
const NEVER_RUN = ['skip', 'todo']

/** The titles of `it`, `test` and `describe`, also behind `each` and `skipIf`; none in a comment, or of what is skipped. */
export function titlesIn(text: string): string[] {
  const source = ts.createSourceFile('a.test.ts', text, ts.ScriptTarget.Latest, false, ts.ScriptKind.TS)
  const titles: string[] = []
  const visit = (node: ts.Node): void => {
    if (ts.isCallExpression(node)) {
      const [opener = '', ...modifiers] = wordsOf(node.expression)
      if (OPENERS.includes(opener)) {
        // With all that is in it.
        if (modifiers.some((word) => NEVER_RUN.includes(word))) return
        const [title] = node.arguments
        if (title !== undefined && ts.isStringLiteralLike(title)) titles.push(title.text)
      }
    }
    ts.forEachChild(node, visit)
  }
  visit(source)
  return titles
}

/** The words of what is called: `it.each(rows)` is `it`, `each`. */
function wordsOf(called: ts.Expression): string[] {
  if (ts.isIdentifier(called)) return [called.text]
  if (ts.isPropertyAccessExpression(called)) return [...wordsOf(called.expression), called.name.text]
  return ts.isCallExpression(called) ? wordsOf(called.expression) : []
}
