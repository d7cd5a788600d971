// What the operating system says about running processes: enough to tell a leftover of ours from a stranger with the same number.
import type * as ChildProcess from 'node:child_process'
import type * as Fs from 'node:fs'
import { cleanText } from './clean-text.ts'

/** One running process. */
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

/** All running processes. Looking takes about 10 µs a process on Linux, a start of `ps` elsewhere; everything is synchronous, so that it works in the last moment of a host. */
export interface ProcessTable {
  /** Undefined: there is no such process, or nothing can be learned of it. */
  facts(pid: number): ProcessFacts | undefined
  /** Every running process; empty where they cannot be listed. */
  all(): readonly ProcessFacts[]
  /** The value of a variable in the environment that a process was started with; undefined if absent or unreadable. */
  variable(pid: number, name: string): string | undefined
  /** Every process whose environment has the variable. */
  carrying(name: string): readonly { pid: number; value: string }[]
  /** True: environments can be read here. */
  readonly readsEnvironments: boolean
  /** The program and what it runs, for people; not its other arguments, which may hold secrets. At most 256 characters. */
  command(pid: number): string
  /** Two process numbers can be compared only if they come from the same place: this boot of this machine, this process namespace. */
  place(): string
}

const COMMAND_CHARS_MAX = 256
const ENVIRONMENT_BYTES_MAX = 1024 * 1024
const PS_OUTPUT_BYTES_MAX = 8 * 1024 * 1024

const fs = (): typeof Fs => process.getBuiltinModule('node:fs') as typeof Fs

const page = Buffer.allocUnsafeSlow(16 * 1024)

function readProc(path: string): Buffer | undefined {
  try {
    const file = fs().openSync(path, 'r')
    try {
      // The size of these files is always said to be 0, so `readFile` would guess; a bounded loop reads what there is.
      const parts: Buffer[] = []
      for (let length = 0; length < ENVIRONMENT_BYTES_MAX; ) {
        const count = fs().readSync(file, page, 0, page.length, null)
        if (count === 0) break
        parts.push(Buffer.from(page.subarray(0, count)))
        length += count
      }
      return parts.length === 1 ? parts[0] : Buffer.concat(parts)
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

/** `node server.js`, `npx some-package`; neither flags nor values. */
export function shownCommand([program = '', first]: readonly string[]): string {
  const shown = first === undefined || first === '' || /^-|=|:\/\//.test(first) ? program : `${program} ${first}`
  return cleanText(shown).slice(0, COMMAND_CHARS_MAX)
}

function pids(): number[] {
  return fs()
    .readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
}

const linuxTable: ProcessTable = {
  readsEnvironments: true,
  facts(pid) {
    const stat = readProc(`/proc/${pid}/stat`)
    return stat === undefined ? undefined : parseStat(pid, stat.toString('latin1'))
  },
  all() {
    const found: ProcessFacts[] = []
    for (const pid of pids()) {
      const facts = this.facts(pid)
      if (facts !== undefined) found.push(facts)
    }
    return found
  },
  carrying(name) {
    const found: { pid: number; value: string }[] = []
    for (const pid of pids()) {
      const value = this.variable(pid, name)
      if (value !== undefined) found.push({ pid, value })
    }
    return found
  },
  variable(pid, name) {
    const environment = readProc(`/proc/${pid}/environ`)
    if (environment === undefined) return undefined
    const beginning = `${name}=`
    let at = environment.indexOf(beginning)
    while (at > 0 && environment[at - 1] !== 0) at = environment.indexOf(beginning, at + 1)
    if (at === -1) return undefined
    const end = environment.indexOf(0, at)
    return environment.toString('latin1', at + beginning.length, end === -1 ? undefined : end)
  },
  command(pid) {
    return shownCommand((readProc(`/proc/${pid}/cmdline`)?.toString('utf8') ?? '').split('\0'))
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
  const match = /^\s*(\d+)\s+(\d+)\s+(\d+)\s+(\S+)\s+(\S+\s+\S+\s+\S+\s+[\d:]+\s+\d{4})\s*(.*)$/.exec(line)
  if (match === null) return undefined
  const [, pid, parentPid, groupId, state = '', startedAt = '', command = ''] = match
  return {
    pid: Number(pid),
    parentPid: Number(parentPid),
    groupId: Number(groupId),
    startedAt: startedAt.replace(/\s+/g, ' '),
    zombie: state.startsWith('Z'),
    command: shownCommand(command.split(' ')),
  }
}

/** macOS and the BSDs. Environments of other processes cannot be read there, so only groups are known. */
export const psTable: ProcessTable = {
  readsEnvironments: false,
  facts: (pid) => ps(['-p', String(pid)])[0],
  all: () => ps(['-A']),
  variable: () => undefined,
  carrying: () => [],
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
  carrying: () => [],
  command: () => '',
  place: () => '',
}

/** The table of the system that this runs on. */
export const nodeProcesses: ProcessTable =
  process.platform === 'linux' ? linuxTable : process.platform === 'win32' ? noTable : psTable
