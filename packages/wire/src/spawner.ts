// The one place where processes are started and ended: servers, header helpers, whatever comes. No shell, a short environment, a group of its own, and an end
// that nothing survives.
import type { Writable } from 'node:stream'
import { childEnvironment } from './environment.ts'
import { WireError, type WireErrorDetails } from './errors.ts'
import { LEASE_VARIABLE, type Lease, leaseBook } from './leases.ts'
import type { ChildProcessPort, Platform, SpawnSpec, TimerHandle } from './platform.ts'
import { type ProcessFacts, shownCommand } from './process-table.ts'
import { StderrTail } from './stderr-tail.ts'
import { becomesTrue, STEP_MS, stillRuns } from './terminate.ts'
import { resolveWindowsCommand } from './windows-command.ts'

/** A process to start. */
export interface ProcessSpec {
  command: string
  args?: readonly string[]
  /** Literal values; they win over inherited ones. */
  env?: Readonly<Record<string, string>>
  /** Names read from the host's environment, on top of the platform's short list. */
  inheritEnv?: readonly string[]
  /** Default: the host's working directory. */
  cwd?: string
  /** Where to note the process for `reapLeftovers`. Default: nowhere. */
  leaseDirectory?: string
  /** How long it may take to end by itself once its input has ended, before SIGTERM, in milliseconds. Default 2,000. */
  closeGraceMs?: number
}

/** How a process ended. */
export interface ProcessEnd {
  exitCode?: number
  signal?: string
}

/** How long output may still be read after the process itself has ended, when something else holds its pipes open. */
const DRAIN_MS = 250
/** A grandchild that goes on writing into the pipe keeps nobody alive. */
const DRAIN_TURNS_MAX = 8

/** Groups to kill if the host exits without closing. */
const guards = new WeakMap<Platform, ExitGuard>()

/**
 * Starts a process. Resolves when it runs.
 * @throws {WireError} `spawn-failed`, with the reason in words; nothing is left running then.
 */
export async function spawnProcess(platform: Platform, spec: ProcessSpec): Promise<SpawnedProcess> {
  const lease = await leaseBook(platform, spec.leaseDirectory).open(shownCommand([spec.command, ...(spec.args ?? [])]))
  let child: ChildProcessPort
  try {
    child = platform.spawn(spawnSpecOf(platform, spec, lease.value))
  } catch (cause) {
    await lease.ended()
    throw cause instanceof WireError ? cause : await spawnFailure(platform, spec, cause as Error)
  }
  if (child.pid === undefined) {
    const cause = await new Promise<Error>((resolve) => child.once('error', resolve))
    await lease.ended()
    throw await spawnFailure(platform, spec, cause)
  }
  lease.started(child.pid)
  return new SpawnedProcess(platform, child, { lease, closeGraceMs: spec.closeGraceMs ?? STEP_MS })
}

function spawnSpecOf(platform: Platform, spec: ProcessSpec, lease: string): SpawnSpec {
  const env = { ...childEnvironment(platform.env, platform.os, spec), [LEASE_VARIABLE]: lease }
  const { command, args = [], cwd } = spec
  const program =
    platform.os === 'win32'
      ? resolveWindowsCommand({ command, args, env, cwd: cwd ?? '.' }, (path) => platform.files.isFile(path))
      : { command, args }
  return { ...program, env, ...(cwd === undefined ? {} : { cwd }) }
}

/** A running process and everything it starts. */
export class SpawnedProcess {
  readonly pid: number
  readonly stdin: Writable
  readonly stderr: StderrTail = new StderrTail()
  /** It has ended and what it wrote has been read (for a moment at least, if others hold its pipes). Never rejects. */
  readonly ended: Promise<ProcessEnd>
  /** It has ended, and so has everything it left: its group, and whoever carries its lease. Never rejects. */
  readonly gone: Promise<void>
  readonly #platform: Platform
  readonly #child: ChildProcessPort
  readonly #lease: Lease
  readonly #graceMs: number
  readonly #exited: Promise<void>
  #hasExited = false
  #outputCame = false
  #quietTimer: TimerHandle | undefined
  /** When it was asked to end, and when told to. */
  #askedAtMs = Number.NEGATIVE_INFINITY
  #toldAtMs: number | undefined
  /** Who had left the group and was signalled. */
  readonly #strays = new Map<number, ProcessFacts>()
  #closing: Promise<void> | undefined

  constructor(
    platform: Platform,
    child: ChildProcessPort,
    { lease, closeGraceMs }: { lease: Lease; closeGraceMs: number },
  ) {
    this.#platform = platform
    this.#lease = lease
    this.#graceMs = closeGraceMs
    this.#child = child
    this.pid = child.pid as number
    this.stdin = child.stdin
    child.stderr.on('data', (chunk: Buffer) => this.stderr.push(chunk))
    // EPIPE and the like: the end of the process says more.
    for (const stream of [child.stdin, child.stdout, child.stderr]) stream.on('error', () => {})
    child.once('error', () => {})
    guardOf(platform).add(this)
    this.#exited = new Promise((resolve) => {
      child.once('exit', () => {
        this.#hasExited = true
        resolve()
      })
    })
    this.ended = new Promise((resolve) => {
      const end = (code: number | null, signal: string | null): void =>
        resolve({ ...(code === null ? {} : { exitCode: code }), ...(signal === null ? {} : { signal }) })
      child.once('close', end)
      child.once('exit', (code, signal) => this.#whenQuiet(DRAIN_TURNS_MAX, () => end(code, signal)))
    })
    this.gone = this.ended.then(() => this.#clean())
  }

  /** What it writes to stdout, from the first byte on if called at once. */
  onOutput(listener: (chunk: Buffer) => void): void {
    this.#child.stdout.on('data', (chunk: Buffer) => {
      this.#outputCame = true
      listener(chunk)
    })
  }

  /** One of its pipes is broken or was closed by it while it may still run. Called once. */
  onBroken(listener: () => void): void {
    let told = false
    const tell = (): void => {
      if (told || this.#hasExited || this.#closing !== undefined) return
      told = true
      listener()
    }
    this.stdin.once('error', tell)
    this.#child.stdout.once('end', tell)
  }

  /**
   * End of input, `closeGraceMs` (2 s), SIGTERM to the group, 2 s, SIGKILL to the group. `tell` leaves out the first step. Resolves when nothing of it runs; idempotent.
   */
  close(first: 'ask' | 'tell' = 'ask'): Promise<void> {
    this.#closing ??= this.#close(first)
    return this.#closing
  }

  async #close(first: 'ask' | 'tell'): Promise<void> {
    this.stdin.end()
    if (first === 'ask') {
      this.#askedAtMs = this.#platform.now()
      await this.#exitsWithin(this.#graceMs)
    }
    if (!this.#hasExited) {
      this.#tell()
      if (!(await this.#exitsWithin(STEP_MS))) this.kill()
    }
    await this.gone
  }

  /** The last step, for everything that belongs to it: also what the host does in its last moment. */
  kill(): void {
    this.#signal('SIGKILL')
  }

  #tell(): void {
    this.#toldAtMs = this.#platform.now()
    this.#signal('SIGTERM')
  }

  /** To its group, and to whoever has left it. */
  #signal(signal: 'SIGTERM' | 'SIGKILL'): void {
    if (!this.#groupIsGone()) this.#platform.kill(this.pid, signal, 'group')
    for (const facts of this.#carriers()) {
      if (facts.groupId === this.pid) continue
      this.#strays.set(facts.pid, facts)
      this.#platform.kill(facts.pid, signal, 'process')
    }
  }

  #exitsWithin(ms: number): Promise<boolean> {
    return new Promise((resolve) => {
      if (this.#hasExited) return resolve(true)
      const timer = this.#platform.setTimer(() => resolve(false), ms)
      void this.#exited.then(() => {
        this.#platform.clearTimer(timer)
        resolve(true)
      })
    })
  }

  /** After a blocked event loop the timer is early and the data late: only an interval without data counts, or too many with. */
  #whenQuiet(turnsLeft: number, then: () => void): void {
    this.#outputCame = false
    const look = (): void => (this.#outputCame && turnsLeft > 1 ? this.#whenQuiet(turnsLeft - 1, then) : then())
    this.#quietTimer = this.#platform.setTimer(() => setImmediate(look), DRAIN_MS, 'background')
  }

  /** What the process left behind: its group, and what has moved to a session of its own. Both get the steps that are still due. */
  async #clean(): Promise<void> {
    const platform = this.#platform
    platform.clearTimer(this.#quietTimer)
    // A process that is just ending has no environment any more, but it is there until it is a zombie.
    const isGone = (): boolean =>
      this.#groupIsGone() &&
      this.#carriers().length === 0 &&
      ![...this.#strays.values()].some((stray) => stillRuns(platform, stray))
    const goneBy = (atMs: number): Promise<boolean> => becomesTrue(platform, atMs - platform.now(), isGone)
    if (!(await goneBy(this.#askedAtMs + this.#graceMs))) {
      if (this.#toldAtMs === undefined) this.#tell()
      if (!(await goneBy((this.#toldAtMs ?? platform.now()) + STEP_MS))) {
        this.kill()
        await goneBy(platform.now() + STEP_MS / 2)
      }
    }
    for (const stream of [this.stdin, this.#child.stdout, this.#child.stderr]) stream.destroy()
    guardOf(platform).delete(this)
    await this.#lease.ended()
  }

  /** A container whose first process never asks for its dead keeps them as zombies, which still count as a group. */
  #groupIsGone(): boolean {
    const { os, processes } = this.#platform
    if (os === 'win32' || !this.#platform.kill(this.pid, 0, 'group')) return true
    if (!this.#hasExited) return false
    const members = processes.all().filter(({ groupId }) => groupId === this.pid)
    return members.length > 0 && members.every(({ zombie }) => zombie)
  }

  /** Everybody who carries the lease of this process, in whatever group and session. */
  #carriers(): ProcessFacts[] {
    const { processes } = this.#platform
    return carriersOf(this.#platform, this.#lease.value)
      .map((pid) => processes.facts(pid))
      .filter((facts) => facts !== undefined && !facts.zombie) as ProcessFacts[]
  }
}

/** A dozen servers that are closed together look once. */
const LOOK_KEPT_MS = 5
const looks = new WeakMap<Platform, { atMs: number; pids: Map<string, number[]> }>()

function carriersOf(platform: Platform, lease: string): readonly number[] {
  if (!platform.processes.readsEnvironments) return []
  let look = looks.get(platform)
  if (look === undefined || platform.now() - look.atMs > LOOK_KEPT_MS) {
    const pids = new Map<string, number[]>()
    for (const { pid, value } of platform.processes.carrying(LEASE_VARIABLE)) {
      const known = pids.get(value)
      if (known === undefined) pids.set(value, [pid])
      else known.push(pid)
    }
    looks.set(platform, (look = { atMs: platform.now(), pids }))
  }
  return look.pids.get(lease) ?? []
}

class ExitGuard {
  readonly #running = new Set<SpawnedProcess>()
  readonly #platform: Platform
  #stop: (() => void) | undefined

  constructor(platform: Platform) {
    this.#platform = platform
  }

  add(one: SpawnedProcess): void {
    this.#running.add(one)
    this.#stop ??= this.#platform.onExit(() => {
      for (const running of this.#running) running.kill()
    })
  }

  delete(one: SpawnedProcess): void {
    this.#running.delete(one)
    if (this.#running.size > 0) return
    this.#stop?.()
    this.#stop = undefined
  }
}

function guardOf(platform: Platform): ExitGuard {
  let guard = guards.get(platform)
  if (guard === undefined) guards.set(platform, (guard = new ExitGuard(platform)))
  return guard
}

const PATH_CHARS_SHOWN = 120

/** Says what was looked for and where: a missing folder and a missing command are the same error to the operating system. */
async function spawnFailure(platform: Platform, { command, cwd, env }: ProcessSpec, cause: Error): Promise<WireError> {
  const { code } = cause as NodeJS.ErrnoException
  const say = (why: string, details: WireErrorDetails = { cause, sent: false }): WireError =>
    new WireError('spawn-failed', `Could not start "${command}": ${why}`, details)
  if (cwd !== undefined && (code === 'ENOENT' || code === 'ENOTDIR' || code === 'EACCES')) {
    const folder = await platform.files.inspect(cwd).catch(() => undefined)
    if (folder === undefined || folder.kind === 'file')
      return say(`its working directory "${cwd}" does not exist`, { sent: false }) // not a missing command, as the cause would say
  }
  if (code === 'EACCES') return say('it may not be executed')
  if (code !== 'ENOENT') return say(cause.message)
  if (command.includes('/')) return say('there is no such file, or its interpreter is missing')
  if (/\s/.test(command)) return say('no program has this name; if it holds arguments, they belong into "args"')
  const path = env?.['PATH'] ?? platform.env['PATH'] ?? ''
  const shown = path.length > PATH_CHARS_SHOWN ? `${path.slice(0, PATH_CHARS_SHOWN)}…` : path
  return say(`it is in none of the folders of PATH (${shown})`)
}
