/** Runs the real promtool, amtool and sloth where they are installed; tests that need them skip where they are not. */
import { execFile, execFileSync } from 'node:child_process'
import { promisify } from 'node:util'

type Tool = 'promtool' | 'amtool' | 'sloth'

function present(name: Tool, versionFlag = '--version'): boolean {
  try {
    execFileSync(name, [versionFlag], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

export const HAS_PROMTOOL = present('promtool')
export const HAS_AMTOOL = present('amtool')
export const HAS_SLOTH = present('sloth', 'version')

/** Its output; rejects with that when it finds something wrong. */
export async function runTool(name: Tool, args: readonly string[], cwd: string): Promise<string> {
  const { stdout } = await promisify(execFile)(name, [...args], { cwd })
  return stdout
}
