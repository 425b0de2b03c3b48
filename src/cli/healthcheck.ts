/** `sluice healthcheck`: asks a running Sluice whether it lives, for images without a shell or curl. */
import { Command, Option } from 'commander'
import { systemTerminal, type Terminal } from './terminal.ts'

const EXAMPLES = `
Examples:
  sluice healthcheck
  sluice healthcheck --ready --url http://127.0.0.1:9090

Exit code: 0 yes, 1 no or no answer.
`

interface Flags {
  readonly url: string
  readonly ready: boolean
  readonly timeout: string
}

export function healthcheckCommand(terminal: Terminal = systemTerminal): Command {
  return new Command('healthcheck')
    .description('ask the admin port of a running Sluice whether it lives')
    .addOption(
      new Option('--url <url>', 'address of the admin port')
        .env('SLUICE_ADMIN_URL')
        .default('http://127.0.0.1:9090'),
    )
    .option('--ready', 'ask whether traffic should come here, not only whether it lives', false)
    .option('--timeout <ms>', 'longest wait for the answer', '2000')
    .addHelpText('after', EXAMPLES)
    .action(async ({ url, ready, timeout }: Flags) => {
      if (!/^https?:/.test(url) || !URL.canParse(url)) {
        throw new Error(
          `--url: ${JSON.stringify(url)} is no address; write for example http://127.0.0.1:9090`,
        )
      }
      const target = new URL(ready ? '/readyz' : '/livez', url)
      const verdict = await ask(target, Number(timeout))
      terminal.out(`${target.href} ${verdict.text}\n`)
      terminal.exitWith(verdict.good ? 0 : 1)
    })
}

async function ask(
  target: URL,
  timeoutMs: number,
): Promise<{ readonly good: boolean; readonly text: string }> {
  try {
    const response = await fetch(target, { signal: AbortSignal.timeout(timeoutMs) })
    await response.body?.cancel()
    return { good: response.ok, text: String(response.status) }
  } catch (error) {
    const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error
    return { good: false, text: cause instanceof Error ? cause.message : String(cause) }
  }
}
