// Windows: a command is looked up with PATHEXT, and a command file needs the command interpreter, which reads its arguments a second time. This branch is tested
// as a pure function only; ends of processes go through `taskkill` (see `platform.ts`).
import { WireError } from './errors.ts'

/** What to start in place of what was asked for. */
export interface Resolved {
  command: string
  args: readonly string[]
  /** The arguments are quoted already. */
  verbatimArguments: boolean
}

interface Wanted {
  command: string
  args: readonly string[]
  env: Readonly<Record<string, string>>
  cwd: string
}

/** What the interpreter would act on even inside quotes, and what ends its line. */
const READ_AGAIN = /[%!^"&|<>()\r\n\0]/

/**
 * Which program to start. A lookup that finds nothing gives the command back as it is, so that the system's own error is told.
 * @throws {WireError} `spawn-failed` for arguments that a command file would read as commands.
 */
export function resolveWindowsCommand(wanted: Wanted, isFile: (path: string) => boolean): Resolved {
  const { command, args, env } = wanted
  const found = candidates(wanted).find(isFile)
  if (found === undefined || !/\.(?:cmd|bat)$/i.test(found))
    return { command: found ?? command, args, verbatimArguments: false }
  const bad = args.find((arg) => READ_AGAIN.test(arg))
  if (bad !== undefined || READ_AGAIN.test(found.replace(/[()]/g, '')))
    throw new WireError(
      'spawn-failed',
      `Could not start "${command}": it is a command file, and an argument holds a character that cmd.exe would act on (one of % ! ^ " & | < > ( ) or a line end). Name the program that the command file starts instead`,
      { sent: false },
    )
  const line = [found, ...args].map((part) => `"${part.replace(/\\+$/, '$&$&')}"`).join(' ')
  return {
    command: variableIn(env, 'COMSPEC') ?? 'cmd.exe',
    args: ['/d', '/s', '/c', `"${line}"`],
    verbatimArguments: true,
  }
}

function candidates({ command, env, cwd }: Wanted): string[] {
  const hasFolder = /[\\/]/.test(command)
  const folders = hasFolder
    ? [/^(?:[A-Za-z]:|[\\/])/.test(command) ? '' : `${cwd}\\`]
    : (variableIn(env, 'PATH') ?? '')
        .split(';')
        .filter((folder) => folder !== '')
        .map((folder) => `${folder.replace(/[\\/]$/, '')}\\`)
  const extensions = (variableIn(env, 'PATHEXT') ?? '.COM;.EXE;.BAT;.CMD').split(';').filter((one) => one !== '')
  const names = /\.[^.\\/]+$/.test(command)
    ? [command, ...extensions.map((one) => command + one)]
    : extensions.map((one) => command + one)
  return folders.flatMap((folder) => names.map((name) => folder + name))
}

/** Names of variables differ in case only by accident there. */
function variableIn(env: Readonly<Record<string, string>>, name: string): string | undefined {
  return Object.entries(env).find(([key]) => key.toUpperCase() === name)?.[1]
}
