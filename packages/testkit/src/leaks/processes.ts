// Which processes a test file has started and not ended, read from /proc (Linux; elsewhere only the handles of direct children are seen, in `resources.ts`).
import { randomBytes } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { delimiter } from 'node:path'

/** A process that is still there. */
interface LeftProcess {
  readonly pid: number
  /** The command line, cut at 160 characters. */
  readonly command: string
}

/** Watches for processes from construction on. */
export interface ProcessWatch {
  /** What is alive now and was begun since the watch started: descendants of this process, and orphans that carry its mark. */
  left(): LeftProcess[]
  /** Takes the mark out of this process's environment again. */
  stop(): void
}

const COMMAND_CHARS_MAX = 160

/**
 * Starts watching. The mark is a folder that does not exist, at the end of PATH: PATH is the one variable that passes every environment allow-list, so a grandchild whose parent has died is still known as ours.
 */
export function watchProcesses(): ProcessWatch {
  if (process.platform !== 'linux') return { left: () => [], stop: () => {} }
  const mark = `/nonexistent/convoke-test-${process.pid}-${randomBytes(6).toString('hex')}`
  const pathBefore = process.env['PATH'] ?? ''
  process.env['PATH'] = `${pathBefore}${delimiter}${mark}`
  const before = new Set(descendants(readTable()))
  return {
    left() {
      const table = readTable()
      const ours = new Set(descendants(table))
      for (const pid of table.keys()) if (!ours.has(pid) && pid !== process.pid && carries(pid, mark)) ours.add(pid)
      return [...ours].filter((pid) => !before.has(pid)).map((pid) => ({ pid, command: commandOf(pid) }))
    },
    stop() {
      process.env['PATH'] = pathBefore
    },
  }
}

/** pid → parent pid, without zombies. */
function readTable(): Map<number, number> {
  const table = new Map<number, number>()
  for (const entry of readdirSync('/proc')) {
    const pid = Number(entry)
    if (!Number.isInteger(pid)) continue
    const stat = read(`/proc/${pid}/stat`)
    // The command stands in brackets and may hold any character: the fields are counted from the last bracket.
    const [state, parent] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    if (parent !== undefined && state !== 'Z' && state !== 'X') table.set(pid, Number(parent))
  }
  return table
}

function descendants(table: ReadonlyMap<number, number>): number[] {
  return [...table.keys()].filter((pid) => {
    let at = table.get(pid)
    while (at !== undefined && at > 1 && at !== process.pid) at = table.get(at)
    return at === process.pid
  })
}

function carries(pid: number, mark: string): boolean {
  return read(`/proc/${pid}/environ`).includes(mark)
}

function commandOf(pid: number): string {
  return read(`/proc/${pid}/cmdline`).replaceAll('\0', ' ').trim().slice(0, COMMAND_CHARS_MAX)
}

/** The text of a /proc file, or nothing when the process has gone or is somebody else's. */
function read(path: string): string {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    return ''
  }
}
