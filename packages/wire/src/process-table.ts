// What the operating system says about running processes: enough to tell a leftover of ours from a stranger with the same number.
import type * as ChildProcess from 'node:child_process'
import type * as Fs from 'node:fs'

export interface ProcessFacts {
  pid: number
  parentPid: number
  /** The process group it belongs to. */
  groupId: number
  /** Differs when the number has been given to another process since. */
  startedAt: string
  /** Ended, and nobody has asked how. */
  zombie: boolean
}

export interface ProcessTable {
  /** Undefined: there is no such process, or nothing can be learned of it. */
  facts(pid: number): ProcessFacts | undefined
  /** Every running process; empty where they cannot be listed. */
  all(): readonly ProcessFacts[]
  /** The value of a variable in the environment that a process was started with; undefined if absent or unreadable. */
  variable(pid: number, name: string): string | undefined
  /** True: `variable` works here. */
  readonly readsEnvironments: boolean
  /** The command line, for people; cut to 256 characters. */
  command(pid: number): string
  /** Two process numbers can be compared only if they come from the same place: this boot of this machine, this process namespace. */
  place(): string
}

const COMMAND_CHARS_MAX = 256
const ENVIRONMENT_BYTES_MAX = 1024 * 1024
const PS_OUTPUT_BYTES_MAX = 8 * 1024 * 1024

const fs = (): typeof Fs => process.getBuiltinModule('node:fs') as typeof Fs

function readProc(path: string): Buffer | undefined {
  try {
    const file = fs().openSync(path, 'r')
    try {
      // The size of these files is always said to be 0, so `readFile` would guess; a bounded loop reads what there is.
      const parts: Buffer[] = []
      for (let length = 0; length < ENVIRONMENT_BYTES_MAX; ) {
        const part = Buffer.allocUnsafe(16 * 1024)
        const count = fs().readSync(file, part, 0, part.length, null)
        if (count === 0) break
        parts.push(part.subarray(0, count))
        length += count
      }
      return Buffer.concat(parts)
    } finally {
      fs().closeSync(file)
    }
  } catch {
    return undefined
  }
}

/** `/proc/PID/stat`: the name may hold blanks and brackets, so fields are counted from its last closing bracket. */
export function parseStat(pid: number, stat: string): ProcessFacts | undefined {
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  const [state, parentPid, groupId, startedAt] = [fields[0], fields[1], fields[2], fields[19]]
  if (state === undefined || startedAt === undefined) return undefined
  return {
    pid,
    parentPid: Number(parentPid),
    groupId: Number(groupId),
    startedAt,
    zombie: state === 'Z' || state === 'X',
  }
}

const linuxTable: ProcessTable = {
  readsEnvironments: true,
  facts(pid) {
    const stat = readProc(`/proc/${pid}/stat`)
    return stat === undefined ? undefined : parseStat(pid, stat.toString('latin1'))
  },
  all() {
    const found: ProcessFacts[] = []
    for (const name of fs().readdirSync('/proc')) {
      const facts = /^\d+$/.test(name) ? this.facts(Number(name)) : undefined
      if (facts !== undefined) found.push(facts)
    }
    return found
  },
  variable(pid, name) {
    const environment = readProc(`/proc/${pid}/environ`)?.toString('latin1')
    if (environment === undefined) return undefined
    const start = environment.startsWith(`${name}=`) ? 0 : environment.indexOf(`\0${name}=`) + 1
    if (start === 0 && !environment.startsWith(`${name}=`)) return undefined
    const end = environment.indexOf('\0', start)
    return environment.slice(start + name.length + 1, end === -1 ? undefined : end)
  },
  command(pid) {
    const line = readProc(`/proc/${pid}/cmdline`)?.toString('utf8') ?? ''
    return line.split('\0').join(' ').trim().slice(0, COMMAND_CHARS_MAX)
  },
  place() {
    const boot = readProc('/proc/sys/kernel/random/boot_id')?.toString('latin1').trim() ?? ''
    try {
      return `${boot} ${fs().readlinkSync('/proc/self/ns/pid')}`
    } catch {
      return boot
    }
  },
}

/** One line of `ps -o pid=,ppid=,pgid=,stat=,lstart=,command=`. */
export function parsePsLine(line: string): (ProcessFacts & { command: string }) | undefined {
  const match = /^\s*(\d+)\s+(\d+)\s+(\d+)\s+(\S+)\s+(\S+\s+\S+\s+\S+\s+[\d:]+\s+\d{4})\s?(.*)$/.exec(line)
  if (match === null) return undefined
  const [, pid, parentPid, groupId, state = '', startedAt = '', command = ''] = match
  return {
    pid: Number(pid),
    parentPid: Number(parentPid),
    groupId: Number(groupId),
    startedAt: startedAt.replace(/\s+/g, ' '),
    zombie: state.startsWith('Z'),
    command: command.slice(0, COMMAND_CHARS_MAX),
  }
}

/** macOS and the BSDs. Environments of other processes cannot be read there, so only groups are known. */
export const psTable: ProcessTable = {
  readsEnvironments: false,
  facts: (pid) => ps(['-p', String(pid)])[0],
  all: () => ps(['-A']),
  variable: () => undefined,
  command: (pid) => ps(['-p', String(pid)])[0]?.command ?? '',
  place: () => '',
}

function ps(which: readonly string[]): (ProcessFacts & { command: string })[] {
  const { spawnSync } = process.getBuiltinModule('node:child_process') as typeof ChildProcess
  const { stdout } = spawnSync('ps', [...which, '-o', 'pid=,ppid=,pgid=,stat=,lstart=,command='], {
    env: { PATH: '/bin:/usr/bin', LC_ALL: 'C' },
    maxBuffer: PS_OUTPUT_BYTES_MAX,
    timeout: 5_000,
  })
  return (stdout ?? Buffer.alloc(0))
    .toString('utf8')
    .split('\n')
    .map(parsePsLine)
    .filter((one) => one !== undefined)
}

/** Windows has neither; there a dead host's children are not looked for. */
const noTable: ProcessTable = {
  readsEnvironments: false,
  facts: () => undefined,
  all: () => [],
  variable: () => undefined,
  command: () => '',
  place: () => '',
}

export const nodeProcesses: ProcessTable =
  process.platform === 'linux' ? linuxTable : process.platform === 'win32' ? noTable : psTable
