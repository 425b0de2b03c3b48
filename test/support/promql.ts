/** Reads PromQL just far enough to say which series it selects and which labels it names; no grammar. */

export interface Selector {
  readonly metric: string
  readonly labels: readonly string[]
}

export interface QueryParts {
  readonly selectors: readonly Selector[]
  /** Labels of `by`, `without`, `on`, `ignoring` and `group_…` clauses. */
  readonly groupLabels: readonly string[]
}

const KEYWORDS = new Set([
  'and',
  'or',
  'unless',
  'by',
  'without',
  'on',
  'ignoring',
  'group_left',
  'group_right',
  'bool',
  'offset',
])
const CLAUSE = /\b(?:by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)/g

/** Throws when brackets or quotes do not match. */
export function queryParts(expr: string): QueryParts {
  const groupLabels: string[] = []
  const bare = withoutStrings(expr)
  assertBalanced(bare, expr)
  const rest = bare.replaceAll(CLAUSE, (_, labels: string) => {
    groupLabels.push(
      ...labels
        .split(',')
        .map((label) => label.trim())
        .filter(Boolean),
    )
    return ' '
  })
  const selectors = [...rest.matchAll(/([a-zA-Z_:][\w:]*)\s*(\{[^}]*\})?(\s*\()?/g)]
    .filter(([, name = '', , call]) => call === undefined && !KEYWORDS.has(name) && !isDuration(rest, name))
    .map(([, metric = '', braces = '']) => ({
      metric,
      labels: [...braces.matchAll(/([a-zA-Z_]\w*)\s*(?:=~|!~|!=|=)/g)].map(([, label]) => label ?? ''),
    }))
  return { selectors, groupLabels }
}

/** The same text with nothing between quotes and no ranges, whose units look like names. */
function withoutStrings(expr: string): string {
  const bare = expr.replaceAll(/"(?:[^"\\]|\\.)*"/g, '""').replaceAll(/\[[^\]]*\]/g, '')
  if (bare.replaceAll('""', '').includes('"')) throw new Error(`quotes do not match: ${expr}`)
  return bare
}

function isDuration(rest: string, name: string): boolean {
  return new RegExp(`\\d${name}\\b`).test(rest) && /^[smhdwy]$/.test(name)
}

function assertBalanced(bare: string, expr: string): void {
  const open: string[] = []
  const pairs: Readonly<Record<string, string>> = { ')': '(', '}': '{' }
  for (const char of bare) {
    if (char === '(' || char === '{') open.push(char)
    const wanted = pairs[char]
    if (wanted !== undefined && open.pop() !== wanted) throw new Error(`brackets do not match: ${expr}`)
  }
  if (open.length > 0) throw new Error(`brackets do not match: ${expr}`)
}
