// Gives a test file a temporary folder of its own and tells what stays in it.
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Watches the temporary folder of this process. */
export interface TempWatch {
  /** Paths of entries that are still there. */
  left(): string[]
  /** Removes the folder with all that is in it. */
  stop(): void
}

/** Node's compile cache lives under the temporary folder by design. */
const ALLOWED: ReadonlySet<string> = new Set(['node-compile-cache'])
const VARIABLES: readonly string[] = process.platform === 'win32' ? ['TEMP', 'TMP'] : ['TMPDIR']

/** Short: the paths of sockets in it have to be. */
const PREFIX = 'cvk-'

/** A worker that was killed could not clean up behind itself. */
function sweep(parent: string): void {
  for (const name of readdirSync(parent)) {
    const pid = new RegExp(`^${PREFIX}(\\d+)-`).exec(name)?.[1]
    if (pid !== undefined && !isAlive(Number(pid))) rmSync(join(parent, name), { recursive: true, force: true })
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH'
  }
}

/** Points `os.tmpdir()` of this process (and of the children that inherit its environment) at a new empty folder. */
export function watchTempEntries(): TempWatch {
  sweep(tmpdir())
  const folder = mkdtempSync(join(tmpdir(), `${PREFIX}${process.pid}-`))
  const before = VARIABLES.map((name) => process.env[name])
  for (const name of VARIABLES) process.env[name] = folder
  const remove = (): void => rmSync(folder, { recursive: true, force: true })
  process.once('exit', remove)
  return {
    left: () =>
      readdirSync(folder)
        .filter((name) => !ALLOWED.has(name))
        .map((name) => join(folder, name)),
    stop() {
      for (const [index, name] of VARIABLES.entries()) {
        const value = before[index]
        if (value === undefined) delete process.env[name]
        else process.env[name] = value
      }
      process.off('exit', remove)
      remove()
    },
  }
}
