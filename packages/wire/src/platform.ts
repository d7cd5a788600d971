// The one port to the world outside: clock, timers, randomness, processes, files, network. Everything in this package reaches them through a `Platform`
// value, so that a whole host can run on a simulated one.
import type * as ChildProcess from 'node:child_process'
import type * as Crypto from 'node:crypto'
import type * as Fs from 'node:fs'
import type { Readable, Writable } from 'node:stream'
import type { HttpClient } from './http-port.ts'
import { type FilesPort, nodeFiles } from './platform-files.ts'
import { nodeProcesses, type ProcessTable } from './process-table.ts'
import type { HttpTarget } from './target.ts'

/** What `setTimer` returned; only `clearTimer` looks at it. */
export type TimerHandle = object

/** A process to start: what the operating system is told, and nothing that needs a decision. */
export interface SpawnSpec {
  command: string
  args: readonly string[]
  /** The whole environment of the child. */
  env: Readonly<Record<string, string>>
  cwd?: string
  /** Windows: the arguments are quoted already. */
  verbatimArguments?: boolean
}

/** A started process. Its streams are pipes; it leads a process group of its own (not on Windows). */
export interface ChildProcessPort {
  /** Undefined when the start failed; `error` follows. */
  readonly pid?: number | undefined
  readonly stdin: Writable
  readonly stdout: Readable
  readonly stderr: Readable
  once(event: 'error', listener: (error: Error) => void): unknown
  /** The process has ended; output may still be in the pipes. */
  once(event: 'exit', listener: (code: number | null, signal: NodeJS.Signals | null) => void): unknown
  /** The process has ended and its output is read to the end. */
  once(event: 'close', listener: (code: number | null, signal: NodeJS.Signals | null) => void): unknown
}

/** The world outside. Times are in ms. */
export interface Platform {
  /** Monotonic time in ms. */
  now(): number
  /** Time since the epoch in ms. */
  dateMs(): number
  /** Calls back once after `ms`. A `background` timer does not keep the process alive. */
  setTimer(callback: () => void, ms: number, kind?: 'background'): TimerHandle
  clearTimer(timer: TimerHandle | undefined): void
  /** Cryptographically strong. */
  randomBytes(count: number): Buffer
  /** The environment of the host. */
  readonly env: Readonly<Record<string, string | undefined>>
  /** `linux`, `darwin`, `win32` … */
  readonly os: string
  /** The process id of the host. */
  readonly pid: number
  /** The user that the host runs as; -1 where there is no such number. */
  readonly userId: number
  readonly processes: ProcessTable
  /** Starts a process; failures come as its `error` event. */
  spawn(spec: SpawnSpec): ChildProcessPort
  /** Sends a signal to a process, or to the group that it leads. False when there is nobody to get it. */
  kill(pid: number, signal: NodeJS.Signals | 0, to: 'process' | 'group'): boolean
  /** Calls back when the host process exits; synchronous work only. Returns how to stop listening. */
  onExit(listener: () => void): () => void
  readonly files: FilesPort
  /** Stands in for the network. Undefined: the real one. */
  readonly http?: (url: URL, target: HttpTarget) => HttpClient | Promise<HttpClient>
}

const isWindows = process.platform === 'win32'

/** The real world. Modules of Node are loaded when they are first needed: the import of this package costs a few ms. */
export const nodePlatform: Platform = {
  now: () => performance.now(),
  dateMs: () => Date.now(),
  setTimer(callback, ms, kind) {
    const timer = setTimeout(callback, ms)
    if (kind === 'background') timer.unref()
    return timer
  },
  clearTimer: (timer) => clearTimeout(timer as NodeJS.Timeout | undefined),
  randomBytes: (count) =>
    kernelBytes(count) ?? (process.getBuiltinModule('node:crypto') as typeof Crypto).randomBytes(count),
  env: process.env,
  os: process.platform,
  pid: process.pid,
  userId: process.getuid?.() ?? -1,
  processes: nodeProcesses,
  spawn: ({ command, args, env, cwd, verbatimArguments = false }) =>
    (process.getBuiltinModule('node:child_process') as typeof ChildProcess).spawn(command, [...args], {
      stdio: ['pipe', 'pipe', 'pipe'],
      env,
      ...(cwd === undefined ? {} : { cwd }),
      detached: !isWindows, // a group of its own, so that grandchildren end with it
      windowsHide: true,
      windowsVerbatimArguments: verbatimArguments,
    }),
  kill(pid, signal, to) {
    if (isWindows && to === 'group' && signal !== 0) return killTree(pid, signal)
    try {
      return process.kill(to === 'group' && !isWindows ? -pid : pid, signal)
    } catch (error) {
      // Somebody is there, but belongs to another user: nothing that a signal of ours could end.
      return signal === 0 && (error as NodeJS.ErrnoException).code === 'EPERM'
    }
  },
  onExit(listener) {
    process.on('exit', listener)
    return () => process.off('exit', listener)
  },
  files: nodeFiles,
}

/** Where the kernel's source is a file it is read from there: `node:crypto` takes 15 ms to load, and a host needs little else of it. */
function kernelBytes(count: number): Buffer | undefined {
  if (isWindows) return undefined
  const fs = process.getBuiltinModule('node:fs') as typeof Fs
  let file: number | undefined
  try {
    file = fs.openSync('/dev/urandom', 'r')
    const bytes = Buffer.alloc(count)
    return fs.fstatSync(file).isCharacterDevice() && fs.readSync(file, bytes, 0, count, null) === count
      ? bytes
      : undefined
  } catch {
    return undefined
  } finally {
    if (file !== undefined) fs.closeSync(file)
  }
}

/** Windows has no groups and no way to ask a console program to end: the first signal does nothing, the last ends the whole tree. */
function killTree(pid: number, signal: NodeJS.Signals): boolean {
  if (signal !== 'SIGKILL') return true
  const { spawnSync } = process.getBuiltinModule('node:child_process') as typeof ChildProcess
  return spawnSync('taskkill', ['/PID', String(pid), '/T', '/F'], { stdio: 'ignore', windowsHide: true }).status === 0
}
