/** Runs the real promtool and amtool where they are installed; tests that need them skip where they are not. */
import { execFile, execFileSync } from 'node:child_process'
import { promisify } from 'node:util'

function present(name: string): boolean {
  try {
    execFileSync(name, ['--version'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

export const HAS_PROMTOOL = present('promtool')
export const HAS_AMTOOL = present('amtool')

/** Its output; rejects with that when it finds something wrong. */
export async function runTool(
  name: 'promtool' | 'amtool',
  args: readonly string[],
  cwd: string,
): Promise<string> {
  const { stdout } = await promisify(execFile)(name, [...args], { cwd })
  return stdout
}
