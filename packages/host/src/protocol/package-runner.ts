// Commands that may first have to download the server they are to run. Pure.

/** Runners that always do, and runners that do with one of these first arguments. */
const RUNNERS: Readonly<Record<string, readonly string[] | 'always'>> = {
  npx: 'always',
  uvx: 'always',
  bunx: 'always',
  pnpx: 'always',
  pnpm: ['dlx'],
  yarn: ['dlx'],
  npm: ['exec', 'x'],
  bun: ['x'],
  uv: ['tool'],
  pipx: ['run'],
}

/**
 * The package runner behind a command, as it is called (`npx`, `pnpm dlx`), or undefined for an ordinary program. A path before the name
 * and the ending of a Windows script do not matter.
 */
export function packageRunnerOf(command: string, args: readonly string[]): string | undefined {
  const program = (command.split(/[/\\]/).pop() ?? '').replace(/\.(?:cmd|exe|ps1)$/i, '').toLowerCase()
  const runner = Object.hasOwn(RUNNERS, program) ? RUNNERS[program] : undefined
  if (runner === undefined) return undefined
  if (runner === 'always') return program
  const verb = args.find((arg) => !arg.startsWith('-'))
  return verb !== undefined && runner.includes(verb) ? `${program} ${verb}` : undefined
}
