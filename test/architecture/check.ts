/** Reads sources and names each breach of the rules: a pure function, so that planted breaches can be tried on it. */
import ts from 'typescript'
import {
  type Arrow,
  BANNED_WORDS,
  FOLDERS,
  type FolderRule,
  HOMES,
  HTTP_FOLDERS,
  IMPURE_GLOBALS,
  MAX_FILE_LINES,
  MAX_FUNCTION_LINES,
  PURE_NODE_MODULES,
} from './rules.ts'

export interface SourceText {
  /** Path from the root of the repository with forward slashes, e.g. `src/core/units.ts`. */
  readonly path: string
  readonly text: string
}

export type RuleName =
  | 'folder'
  | 'arrow'
  | 'types-only'
  | 'home'
  | 'node-module'
  | 'impure'
  | 'async'
  | 'first-line'
  | 'file-length'
  | 'function-length'
  | 'default-export'
  | 'enum'
  | 'any'
  | 'non-null'
  | 'banned-word'

export interface Breach {
  readonly rule: RuleName
  readonly path: string
  readonly line: number
  readonly message: string
}

interface ImportSeen {
  readonly target: string
  readonly typesOnly: boolean
  readonly line: number
}

type Report = (rule: RuleName, line: number, message: string) => void

/** Every breach in `files`, in order of path and line. */
export function findBreaches(files: readonly SourceText[]): Breach[] {
  return files.flatMap((file) => checkFile(file))
}

function checkFile({ path, text }: SourceText): Breach[] {
  const breaches: Breach[] = []
  const report: Report = (rule, line, message) => breaches.push({ rule, path, line, message })
  const owner = ownerOf(path)
  const folder = FOLDERS.find((rule) => rule.name === owner)
  if (folder === undefined) {
    report('folder', 1, `src/${owner} is in no row of the table of folders`)
    return breaches
  }
  const source = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true, ts.ScriptKind.TS)
  checkLayout(text, report)
  checkWords(path.slice(path.lastIndexOf('/') + 1).replace(/\.ts$/, ''), folder, 1, report)
  for (const seen of importsOf(source)) checkImport(path, folder, seen, report)
  walk(source, (node) => {
    const line = source.getLineAndCharacterOfPosition(node.getStart(source)).line + 1
    checkSyntax(node, line, report)
    checkLength(node, source, line, report)
    if (folder.pure) checkPurity(node, line, report)
    for (const name of exportedNames(node)) checkWords(name, folder, line, report)
  })
  return breaches.sort((a, b) => a.line - b.line)
}

/** The row of the table that a path under src belongs to: its first folder, or the loose file itself. */
function ownerOf(path: string): string {
  return path.split('/')[1] ?? ''
}

function walk(node: ts.Node, visit: (node: ts.Node) => void): void {
  visit(node)
  ts.forEachChild(node, (child) => walk(child, visit))
}

function checkLayout(text: string, report: Report): void {
  const lines = text.replace(/\n$/, '').split('\n')
  const first = lines[0]?.startsWith('#!') ? 1 : 0
  if (!/^\/\*\* .*[.?!] \*\/$/.test(lines[first] ?? '')) {
    report('first-line', first + 1, 'a file opens with one line: /** What it decides or translates. */')
  }
  if (lines.length > MAX_FILE_LINES) {
    report('file-length', MAX_FILE_LINES + 1, `${lines.length} lines, the cap is ${MAX_FILE_LINES}`)
  }
}

/** Every way to name another module: import, export from, import(), import('x').T, import x = require(). */
function importsOf(source: ts.SourceFile): ImportSeen[] {
  const seen: ImportSeen[] = []
  walk(source, (node) => {
    const found = importOf(node)
    if (found === undefined || !ts.isStringLiteralLike(found.specifier)) return
    const line = source.getLineAndCharacterOfPosition(node.getStart(source)).line + 1
    seen.push({ target: found.specifier.text, typesOnly: found.typesOnly, line })
  })
  return seen
}

function importOf(node: ts.Node): { specifier: ts.Node; typesOnly: boolean } | undefined {
  if (ts.isImportDeclaration(node)) {
    const clause = node.importClause
    const named = clause?.namedBindings
    const eachIsType =
      clause?.name === undefined &&
      named !== undefined &&
      ts.isNamedImports(named) &&
      named.elements.length > 0 &&
      named.elements.every((element) => element.isTypeOnly)
    return {
      specifier: node.moduleSpecifier,
      typesOnly: clause?.phaseModifier === ts.SyntaxKind.TypeKeyword || eachIsType,
    }
  }
  if (ts.isExportDeclaration(node) && node.moduleSpecifier !== undefined) {
    return { specifier: node.moduleSpecifier, typesOnly: node.isTypeOnly }
  }
  if (ts.isImportTypeNode(node) && ts.isLiteralTypeNode(node.argument)) {
    return { specifier: node.argument.literal, typesOnly: true }
  }
  if (ts.isExternalModuleReference(node)) return { specifier: node.expression, typesOnly: false }
  const called = ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword
  const argument = called ? node.arguments[0] : undefined
  return argument === undefined ? undefined : { specifier: argument, typesOnly: false }
}

function checkImport(path: string, folder: FolderRule, seen: ImportSeen, report: Report): void {
  if (seen.target.startsWith('.')) checkArrow(path, folder, seen, report)
  else checkHome(path, folder, seen, report)
}

function checkArrow(path: string, folder: FolderRule, seen: ImportSeen, report: Report): void {
  const target = resolvePath(path, seen.target)
  const owner = target.startsWith('src/') ? ownerOf(target) : target
  if (owner === folder.name) return
  const arrow: Arrow | undefined = folder.mayImport.find(
    (candidate) => candidate.to === owner && (candidate.only === undefined || candidate.only === target),
  )
  if (arrow === undefined) report('arrow', seen.line, `${folder.name} may not import ${target}`)
  else if (arrow.types && !seen.typesOnly) {
    report('types-only', seen.line, `${folder.name} may import only types of ${target}`)
  }
}

function resolvePath(from: string, specifier: string): string {
  return new URL(specifier, `file:///${from}`).pathname.slice(1)
}

function checkHome(path: string, folder: FolderRule, seen: ImportSeen, report: Report): void {
  const name = packageOf(seen.target)
  const isNode = name.startsWith('node:')
  if (isNode && folder.pure && !PURE_NODE_MODULES.includes(name)) {
    report('node-module', seen.line, `${folder.name} is pure and may not import ${name}`)
  }
  const homes = HOMES[name]
  if (homes === undefined) {
    if (!isNode) report('home', seen.line, `${name} has no home in the table`)
  } else if (!homes.includes(folder.name) && !homes.includes(path)) {
    report('home', seen.line, `${name} lives in ${homes.join(', ')}`)
  }
}

function packageOf(specifier: string): string {
  const parts = specifier.split('/')
  return specifier.startsWith('@') ? parts.slice(0, 2).join('/') : (parts[0] ?? specifier)
}

function checkSyntax(node: ts.Node, line: number, report: Report): void {
  if (ts.isEnumDeclaration(node)) report('enum', line, 'use a union of strings')
  if (node.kind === ts.SyntaxKind.AnyKeyword) report('any', line, 'use unknown and narrow it')
  const definite = ts.isVariableDeclaration(node) || ts.isPropertyDeclaration(node)
  if (ts.isNonNullExpression(node) || (definite && node.exclamationToken !== undefined)) {
    report('non-null', line, 'prove that it is there instead')
  }
  const isDefault =
    ts.isExportAssignment(node) ||
    (ts.isExportSpecifier(node) && node.name.text === 'default') ||
    (ts.canHaveModifiers(node) &&
      ts.getModifiers(node)?.some((modifier) => modifier.kind === ts.SyntaxKind.DefaultKeyword))
  if (isDefault) report('default-export', line, 'exports have names')
}

/** Counts the lines of a function that are not blank, its signature included. */
function checkLength(node: ts.Node, source: ts.SourceFile, line: number, report: Report): void {
  if (!ts.isFunctionLike(node) || !('body' in node) || node.body === undefined) return
  const lines = node
    .getText(source)
    .split('\n')
    .filter((text) => text.trim() !== '').length
  if (lines > MAX_FUNCTION_LINES) {
    report('function-length', line, `${lines} lines, the cap is ${MAX_FUNCTION_LINES}`)
  }
}

function checkPurity(node: ts.Node, line: number, report: Report): void {
  if (ts.isPropertyAccessExpression(node) && node.getText() === 'Math.random') {
    report('impure', line, 'take a seeded source of randomness as an argument')
  }
  const isAsync =
    ts.canHaveModifiers(node) &&
    ts.getModifiers(node)?.some((modifier) => modifier.kind === ts.SyntaxKind.AsyncKeyword)
  if (isAsync || ts.isAwaitExpression(node)) report('async', line, 'pure code does not wait')
  if (ts.isIdentifier(node) && IMPURE_GLOBALS.includes(node.text) && !isMemberName(node)) {
    report('impure', line, `${node.text} belongs to the shells; pass what is needed as an argument`)
  }
}

/** True when an identifier only names a member (`a.fetch`, `{ fetch: 1 }`), which is no global. */
function isMemberName(node: ts.Identifier): boolean {
  const parent = node.parent
  if (ts.isPropertyAccessExpression(parent)) return parent.name === node
  if (ts.isQualifiedName(parent)) return parent.right === node
  if (ts.isBindingElement(parent)) return parent.propertyName === node
  const isMember =
    ts.isPropertyAssignment(parent) ||
    ts.isPropertySignature(parent) ||
    ts.isPropertyDeclaration(parent) ||
    ts.isMethodDeclaration(parent) ||
    ts.isMethodSignature(parent) ||
    ts.isGetAccessorDeclaration(parent)
  return isMember && parent.name === node
}

/** The names that a node gives to the outside, if it is an export. */
function exportedNames(node: ts.Node): string[] {
  if (ts.isExportSpecifier(node)) return [node.name.text]
  const isExport =
    ts.canHaveModifiers(node) &&
    ts.getModifiers(node)?.some((modifier) => modifier.kind === ts.SyntaxKind.ExportKeyword)
  if (!isExport) return []
  if (ts.isVariableStatement(node))
    return node.declarationList.declarations.map((each) => each.name.getText())
  const named =
    ts.isFunctionDeclaration(node) ||
    ts.isClassDeclaration(node) ||
    ts.isInterfaceDeclaration(node) ||
    ts.isTypeAliasDeclaration(node)
  return named && node.name !== undefined ? [node.name.text] : []
}

/** Splits `parseHTTPInfo` or `parse-info` into words and names the banned ones, plural included. */
function checkWords(name: string, folder: FolderRule, line: number, report: Report): void {
  const words = name
    .replace(/([a-z0-9])([A-Z])|([A-Z])([A-Z][a-z])/g, '$1$3 $2$4')
    .toLowerCase()
    .split(/[^a-z0-9]+/)
  for (const word of words) {
    const banned = BANNED_WORDS.find((each) => word === each || word === `${each}s`)
    if (banned === undefined || (banned === 'handler' && HTTP_FOLDERS.includes(folder.name))) continue
    report('banned-word', line, `"${banned}" in ${name} says nothing: name what it does`)
  }
}
