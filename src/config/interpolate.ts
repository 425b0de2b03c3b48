/** Fills `${VAR}` and `${VAR:-default}` in; `$${` stands for a plain `${`. */

export type Environment = Readonly<Record<string, string | undefined>>

export interface Interpolated {
  readonly text: string
  /** True when a variable or its default went into the text. */
  readonly filled: boolean
  /** What could not be filled in, as messages; the text is then not to be used. */
  readonly faults: readonly { readonly message: string; readonly suggestion: string }[]
}

const OPENING = /\$\$\{|\$\{([^}]*)(\}?)/g
const VARIABLE = /^([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?$/s

/** A variable that is set but empty takes its default too, as in a shell. */
export function interpolate(text: string, env: Environment): Interpolated {
  const faults: { message: string; suggestion: string }[] = []
  let filled = false
  const result = text.replace(OPENING, (whole, inner: string | undefined, closing: string | undefined) => {
    if (whole === '$${') return '${'
    const match = closing === '}' ? VARIABLE.exec(inner ?? '') : null
    if (match === null) {
      faults.push(malformed(closing === '}'))
      return whole
    }
    const [, name = '', fallback] = match
    const set = Object.hasOwn(env, name) ? env[name] : undefined
    const value = fallback === undefined ? set : set || fallback
    filled = true
    if (value !== undefined) return value
    faults.push({
      message: `the environment has no variable ${name}`,
      suggestion: `set it, or give a default: \${${name}:-…}`,
    })
    return whole
  })
  return { text: result, filled, faults }
}

const SPELLING = `write \${NAME} or \${NAME:-default}, or $\${ for a plain \${`

function malformed(closed: boolean) {
  return {
    message: closed ? 'a variable has no proper name' : `a \${ is never closed`,
    suggestion: SPELLING,
  }
}
